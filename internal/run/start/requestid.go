package start

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// ChildRequestPrefix begins the request IDs of runs that other runs start. Callers cannot use it: a run with such a
// request ID would be found in place of the child.
const ChildRequestPrefix = "child:"

// requestIDViolation returns what is wrong with the request ID of a start.
func requestIDViolation(req Request) string {
	if req.Parent.RunID == "" && strings.HasPrefix(req.RequestID, ChildRequestPrefix) {
		return fmt.Sprintf("begins with %q, which is reserved for runs that other runs start; use another one",
			ChildRequestPrefix)
	}
	return RequestIDViolation(req.RequestID)
}

// maxRequestID is the length of the longest request ID, in bytes.
const maxRequestID = 200

// RequestIDViolation returns what is wrong with a request ID, which a caller chooses so that a repeated request has one
// effect, as text that follows its name; empty where it is valid. Request IDs appear in tables, logs and URLs, and
// therefore consist of printable characters.
func RequestIDViolation(id string) string {
	if len(id) > maxRequestID {
		return fmt.Sprintf("has %d bytes, more than %d", len(id), maxRequestID)
	}
	if !utf8.ValidString(id) {
		return "is not valid UTF-8"
	}
	if id != "" && strings.TrimSpace(id) == "" {
		return "is blank"
	}
	for _, r := range id {
		if !unicode.IsPrint(r) {
			return fmt.Sprintf("contains the character %U, which is not printable", r)
		}
	}
	return ""
}

// runIDs is the namespace of the IDs of runs.
const runIDs = "5b1c58b1-6d0c-4f39-9d53-0f0e6f1d2a07"

// idOf returns the ID of the run that the request with this ID starts in a project. Temporal starts an ID once, so the
// request has one effect also when the database has lost the row of the run.
func idOf(project, id string) string {
	return uuid.NewSHA1(uuid.MustParse(runIDs), []byte(project+"\x00"+id)).String()
}

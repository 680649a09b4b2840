// Package requestid validates request IDs, the IDs that callers choose so that a repeated request has one effect, and
// derives the IDs of runs from them.
package requestid

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// maxBytes is the length of the longest request ID, in bytes.
const maxBytes = 200

// Violation returns what is wrong with a request ID, as text that follows its name; empty where it is valid. Request
// IDs appear in tables, logs and URLs, and therefore consist of printable characters.
func Violation(id string) string {
	if len(id) > maxBytes {
		return fmt.Sprintf("has %d bytes, more than %d", len(id), maxBytes)
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

// runs is the namespace of the IDs of runs.
var runs = uuid.MustParse("5b1c58b1-6d0c-4f39-9d53-0f0e6f1d2a07")

// RunID returns the ID of the run that the request with this ID starts in a project. Temporal starts an ID once, so the
// request has one effect also when the database has lost the row of the run.
func RunID(project, id string) string {
	return uuid.NewSHA1(runs, []byte(project+"\x00"+id)).String()
}

package run

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxRequestID is the longest request ID, in bytes.
const maxRequestID = 200

// ChildRequestPrefix begins the request IDs of runs that other runs start. Callers cannot use it: a run with such a
// request ID would be found in place of the child.
const ChildRequestPrefix = "child:"

// RequestIDProblem returns what is wrong with a request ID, as text that follows its name; empty where it is valid.
// Request IDs appear in tables, logs and URLs, and therefore consist of printable characters.
func RequestIDProblem(id string) string {
	if len(id) > maxRequestID {
		return fmt.Sprintf("has %d bytes, more than %d", len(id), maxRequestID)
	}
	if !utf8.ValidString(id) {
		return "is not valid UTF-8"
	}
	for _, r := range id {
		if !unicode.IsPrint(r) {
			return fmt.Sprintf("contains the character %U, which is not printable", r)
		}
	}
	return ""
}

// requestIDProblem returns what is wrong with the request ID of a start.
func requestIDProblem(req StartRequest) string {
	if req.Parent.RunID == "" && strings.HasPrefix(req.RequestID, ChildRequestPrefix) {
		return fmt.Sprintf("begins with %q, which is reserved for runs that other runs start; use another one", ChildRequestPrefix)
	}
	return RequestIDProblem(req.RequestID)
}

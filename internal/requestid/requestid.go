// Package requestid validates request IDs: the IDs that callers choose so that a repeated request has one effect.
package requestid

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// maxBytes is the length of the longest request ID, in bytes.
const maxBytes = 200

// Problem returns what is wrong with a request ID, as text that follows its name; empty where it is valid. Request IDs appear in
// tables, logs and URLs, and therefore consist of printable characters.
func Problem(id string) string {
	if len(id) > maxBytes {
		return fmt.Sprintf("has %d bytes, more than %d", len(id), maxBytes)
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

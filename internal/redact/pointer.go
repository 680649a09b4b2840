package redact

import (
	"strconv"
	"strings"
)

// EscapePart returns the part of a pointer that names a member of an object.
func EscapePart(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

// UnescapePart returns the name of the member that a part of a pointer names.
func UnescapePart(part string) string { return strings.NewReplacer("~1", "/", "~0", "~").Replace(part) }

// PartIndex returns the index that a part of a pointer names in an array of the given length. It returns false if there
// is none.
func PartIndex(part string, length int) (int, bool) {
	i, err := strconv.Atoi(part)
	return i, err == nil && i >= 0 && i < length && strconv.Itoa(i) == part
}

// Package jsonpointer has the parts of JSON pointers (RFC 6901), such as /orders/0/item~1name.
//
//	name := jsonpointer.Unescape("item~1name")      // "item/name"
//	text := "/" + jsonpointer.Escape("item/name")   // "/item~1name"
//	i, ok := jsonpointer.Index("0", len(orders))
package jsonpointer

import (
	"strconv"
	"strings"
)

// Escape returns the part of a pointer that names a member of an object.
func Escape(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

// Unescape returns the name of the member that a part of a pointer names.
func Unescape(part string) string { return strings.NewReplacer("~1", "/", "~0", "~").Replace(part) }

// Index returns the index that a part of a pointer names in an array of the given length. It returns false if there is
// none.
func Index(part string, length int) (int, bool) {
	i, err := strconv.Atoi(part)
	return i, err == nil && i >= 0 && i < length && strconv.Itoa(i) == part
}

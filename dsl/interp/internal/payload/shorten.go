package payload

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/signalbox-dev/signalbox/dsl/internal/value"
)

const (
	// maxShortened is the size of a shortened value in bytes of JSON.
	maxShortened = 2 << 10
	// minShortened is the size down to which the parts of a value are shortened rather than left out.
	minShortened = 64
	// parts is the number of large parts of an object or array that share its room.
	parts = 4
	// remembered is the number of shortened values that a Shortener keeps.
	remembered = 8
)

// Shortener encodes values as the JSON of records. It remembers the last large values, because each step of a loop has
// the same one. The zero value is ready to use.
type Shortener struct{ last []shortened }

type shortened struct {
	of   any
	json json.RawMessage
	size int
}

// Encode returns the JSON of a value and 0, or, if it is over limit bytes, a shortened one with the size of the whole.
func (s *Shortener) Encode(v any, limit int) (data json.RawMessage, size int) {
	if Size(v, limit) <= limit {
		if data := Encode(v); len(data) <= limit {
			return data, 0
		}
	}
	for _, earlier := range s.last {
		if Identical(earlier.of, v) {
			return earlier.json, earlier.size
		}
	}
	entry := shortened{of: v, json: Shorten(v), size: value.EncodedSize(v)}
	if s.last = append(s.last, entry); len(s.last) > remembered {
		s.last = slices.Delete(s.last, 0, 1)
	}
	return entry.json, entry.size
}

// Identical reports whether two values are the same one. It does not compare the contents of arrays and objects: values
// are never changed.
func Identical(a, b any) bool {
	switch a := a.(type) {
	case string:
		return a == b
	case []any:
		other, ok := b.([]any)
		return ok && len(a) > 0 && len(a) == len(other) && &a[0] == &other[0]
	case map[string]any:
		other, ok := b.(map[string]any)
		return ok && reflect.ValueOf(a).Pointer() == reflect.ValueOf(other).Pointer()
	default:
		return false
	}
}

// Shorten returns at most maxShortened bytes of JSON of the same type as the value. Every part of it has the type, and
// the place, of the part of the value that it shows: strings lose their end, arrays their last items, and objects
// members.
func Shorten(v any) json.RawMessage {
	if data, ok := shorten(nil, v, maxShortened); ok {
		return data
	}
	return Encode("a number that is too long to be shown")
}

// shorten appends a value in at most room bytes. It returns false, and appends nothing, if that is not enough for any
// value of its type.
func shorten(b []byte, v any, room int) ([]byte, bool) {
	if Size(v, room) <= room {
		if data := Encode(v); len(data) <= room {
			return append(b, data...), true
		}
	}
	switch v := v.(type) {
	case string:
		return shortenString(b, v, room)
	case []any:
		return shortenArray(b, v, room)
	case map[string]any:
		return shortenObject(b, v, room)
	}
	return b, false
}

// shortenString appends the beginning of a text with a mark that has its length.
func shortenString(b []byte, text string, room int) ([]byte, bool) {
	mark := fmt.Sprintf(" … [cut: %d bytes in all]", len(text))
	for end := room - len(mark) - len(`""`); end > 0; end -= max(1, end/4) { // escapes may take more room
		end := min(end, len(text))
		for end > 0 && end < len(text) && !utf8.RuneStart(text[end]) {
			end--
		}
		if data := Encode(text[:end] + mark); len(data) <= room {
			return append(b, data...), true
		}
	}
	return b, false
}

func shortenArray(b []byte, list []any, room int) ([]byte, bool) {
	if room < len("[]") {
		return b, false
	}
	b, left := append(b, '['), room-len("[]")
	for i, item := range list {
		before := len(b)
		var ok bool
		if i > 0 {
			b = append(b, ',')
		}
		if b, ok = shorten(b, item, share(item, left-1)); !ok {
			b = b[:before] // an array has no gaps
			break
		}
		left -= len(b) - before
	}
	return append(b, ']'), true
}

func shortenObject(b []byte, object map[string]any, room int) ([]byte, bool) {
	if room < len("{}") {
		return b, false
	}
	const member = len(`"":0,`)
	b, left := append(b, '{'), room-len("{}")
	some := false
	for _, name := range smallest(object, left/member) {
		if len(name) > left {
			continue
		}
		before := len(b)
		var ok bool
		if some {
			b = append(b, ',')
		}
		b = append(append(b, Encode(name)...), ':')
		if b, ok = shorten(b, object[name], share(object[name], left-(len(b)-before))); !ok {
			b = b[:before]
			continue
		}
		some = true
		left -= len(b) - before
	}
	return append(b, '}'), true
}

// share returns the room that a part of a value may take out of what is left: enough for all of a small part, a share
// for a large one, and nothing once little is left.
func share(part any, left int) int {
	switch {
	case left <= 0:
		return 0
	case Size(part, left/2) <= left/2 && value.EncodedSize(part) <= left/2: // a small part: the size is bounded
		return left / 2
	case left < minShortened:
		return 0
	}
	return max(left/parts, minShortened)
}

// smallest returns the first count names of an object's members in order. It does not sort all of them.
func smallest(object map[string]any, count int) []string {
	names := make([]string, 0, min(len(object), 2*count+1))
	for name := range object {
		if names = append(names, name); len(names) > 2*count {
			slices.Sort(names)
			names = names[:count]
		}
	}
	slices.Sort(names)
	return names[:min(len(names), count)]
}

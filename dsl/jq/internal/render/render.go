// Package render writes values as text, as gojq does, and computes an upper bound of the length of the text before it
// is written. It uses no more memory than the text, while gojq's own writer uses several times as much. Package guard
// charges for the work.
package render

import (
	"encoding/json"
	"math/big"
	"strings"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"github.com/signalbox-dev/signalbox/dsl/internal/value"
)

// Grown returns an upper bound of the length of a text in a format.
func Grown(format, s string) int64 {
	n := int64(len(s))
	switch format {
	case "base64":
		return (n + 2) / 3 * 4
	case "urid":
		return n + 2*int64(strings.Count(s, "+"))
	}
	for i := range len(s) {
		n += extra(format, s[i])
	}
	return n
}

// extra is the number of bytes that a format adds to one byte.
func extra(format string, c byte) int64 {
	switch format {
	case "html":
		switch c {
		case '<', '>':
			return 3
		case '&':
			return 4
		case '\'', '"':
			return 5
		}
	case "uri":
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_.~", c) >= 0 {
			return 0
		}
		return 2
	case "csv":
		if c == '"' || c == 0 {
			return 1
		}
	case "tsv":
		if strings.IndexByte("\t\r\n\\\x00", c) >= 0 {
			return 1
		}
	case "sh":
		if c == '\'' || c == 0 {
			return 3
		}
	}
	return 0
}

// ScalarLength returns an upper bound of the length of a number, a boolean or null as text.
func ScalarLength(v any) int64 {
	const longest = 26
	switch v := v.(type) {
	case nil, bool:
		return 5
	case *big.Int:
		return int64(v.BitLen())*301/1000 + 3
	case json.Number:
		return int64(len(v))
	}
	return longest
}

// JSONLength returns an upper bound of the length of a value's JSON text.
func JSONLength(v any) int64 {
	switch v := v.(type) {
	case string:
		return quotedLength(v)
	case []any:
		n := int64(len(v)) + 2
		for _, e := range v {
			n += JSONLength(e)
		}
		return n
	case map[string]any:
		n := 2*int64(len(v)) + 2
		for k, e := range v {
			n += quotedLength(k) + JSONLength(e)
		}
		return n
	}
	return ScalarLength(v)
}

func quotedLength(s string) int64 {
	n := int64(len(s)) + 2
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			i++
			switch {
			case c == '"' || c == '\\' || c >= '\b' && c <= '\r' && c != '\v':
				n++
			case c < ' ' || c > '~':
				n += 5
			}
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			n += 5
		}
		i += size
	}
	return n
}

// JSON writes a value as gojq does, with sorted keys.
func JSON(b *strings.Builder, v any) {
	switch v := v.(type) {
	case string:
		quote(b, v)
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			JSON(b, e)
		}
		b.WriteByte(']')
	case map[string]any:
		b.WriteByte('{')
		for i, k := range value.SortedKeys(v) {
			if i > 0 {
				b.WriteByte(',')
			}
			quote(b, k)
			b.WriteByte(':')
			JSON(b, v[k])
		}
		b.WriteByte('}')
	default:
		Scalar(b, v)
	}
}

// Scalar writes a value that is neither a text nor a container.
func Scalar(b *strings.Builder, v any) {
	if n, ok := v.(*big.Int); ok {
		b.WriteString(n.String())
		return
	}
	data, _ := gojq.Marshal(v) // it returns no error
	b.Write(data)
}

// quote writes a text in pieces: gojq's writer would need several times the memory of a large one.
func quote(b *strings.Builder, s string) {
	const piece = 32 << 10
	if quotedLength(s) == int64(len(s))+2 { // unchanged
		b.WriteByte('"')
		b.WriteString(s)
		b.WriteByte('"')
		return
	}
	b.WriteByte('"')
	for len(s) > 0 {
		end := min(piece, len(s))
		for end < len(s) && end > piece-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		data, _ := gojq.Marshal(s[:end])
		b.Write(data[1 : len(data)-1])
		s = s[end:]
	}
	b.WriteByte('"')
}

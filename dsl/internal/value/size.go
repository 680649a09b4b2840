package value

import (
	"math/big"
	"strconv"
	"unicode/utf8"
)

// EncodedSize returns the length of what Encode returns, without making it. A part that Encode refuses counts nothing.
func EncodedSize(v any) int { return sizeOf(v, 0) }

func sizeOf(v any, depth int) int {
	var number [32]byte
	if depth > MaxDepth {
		return 0
	}
	switch v := v.(type) {
	case nil:
		return len("null")
	case bool:
		return len(strconv.AppendBool(number[:0], v))
	case int:
		return len(strconv.AppendInt(number[:0], int64(v), 10))
	case *big.Int:
		return len(v.Append(nil, 10))
	case float64:
		text, _ := appendFloat(number[:0], v)
		return len(text)
	case string:
		return sizeOfString(v)
	case []any:
		n := len("[]") + max(len(v)-1, 0)
		for _, e := range v {
			n += sizeOf(e, depth+1)
		}
		return n
	case map[string]any:
		n := len("{}") + max(len(v)-1, 0)
		for k, e := range v {
			n += sizeOfString(k) + len(":") + sizeOf(e, depth+1)
		}
		return n
	}
	return sizeOf(Normalize(v), depth)
}

// sizeOfString returns the length of what appendString appends.
func sizeOfString(s string) int {
	const letter, code = len(`\n`), len(`\u0000`)
	n := len(s) + len(`""`)
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			i++
			if c >= 0x20 && c != '"' && c != '\\' && c != 0x7f {
				continue
			}
			switch c {
			case '"', '\\', '\n', '\r', '\t':
				n += letter - 1
			default:
				n += code - 1
			}
			continue
		}
		r, width := utf8.DecodeRuneInString(s[i:])
		i += width
		if r == utf8.RuneError && width == 1 {
			n += utf8.RuneLen(utf8.RuneError) - 1
		}
	}
	return n
}

package guard

import (
	"encoding/json"
	"math/big"
	"strings"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"github.com/signalbox-dev/signalbox/dsl/internal/value"
)

// shape formats a value as the format that is the argument says. It refuses a text over the limit before it is made.
func (m *machine) shape(v any, args []any, f *Fuel) (any, error) {
	format, _ := args[0].(string)
	s, isText := v.(string)
	switch format {
	case "csv", "tsv", "sh":
		return m.row(format, v, f)
	case "text":
		if isText {
			return v, nil
		}
		return f.render(v)
	case "json":
		return f.render(v)
	}
	if !isText {
		rendered, err := f.render(v)
		if err != nil {
			return nil, err
		}
		s, _ = rendered.(string)
	}
	if err := f.charge(started + int64(len(s))/16); err != nil {
		return nil, err
	}
	if err := f.room(grown(format, s)); err != nil {
		return nil, err
	}
	return m.call("@"+format, s)
}

// grown is the length of a text in a format, from above.
func grown(format, s string) int64 {
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

// extra is how many bytes one byte takes in a format beside itself.
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

// row formats a list as one line.
func (m *machine) row(format string, v any, f *Fuel) (any, error) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	cost, bytes := int64(started+4*len(list)), int64(0)
	for _, e := range list {
		if s, ok := e.(string); ok {
			cost += int64(len(s)) / 8
			bytes += grown(format, s) + 3
			continue
		}
		cost += priceOf(e)
		bytes += textLength(e) + 1
	}
	if err := f.charge(cost); err != nil {
		return nil, err
	}
	if err := f.room(bytes); err != nil {
		return nil, err
	}
	return m.call("@"+format, v)
}

// textLength is how long a number, a boolean or null is as text, from above.
func textLength(v any) int64 {
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

// render writes a value as JSON text, as the machine does, into memory of the right size.
func (f *Fuel) render(v any) (any, error) {
	g := &gauge{limits: f.Limits}
	if err := f.measure(g, v); err != nil {
		return nil, err
	}
	if err := f.charge(3*g.nodes + g.text()/16 + g.sorting); err != nil {
		return nil, err
	}
	size := jsonLength(v)
	if err := f.room(size); err != nil {
		return nil, err
	}
	var b strings.Builder
	b.Grow(int(size))
	write(&b, v)
	return b.String(), nil
}

// jsonLength is the length of a value's JSON text, from above.
func jsonLength(v any) int64 {
	switch v := v.(type) {
	case string:
		return quotedLength(v)
	case []any:
		n := int64(len(v)) + 2
		for _, e := range v {
			n += jsonLength(e)
		}
		return n
	case map[string]any:
		n := 2*int64(len(v)) + 2
		for k, e := range v {
			n += quotedLength(k) + jsonLength(e)
		}
		return n
	}
	return textLength(v)
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

func write(b *strings.Builder, v any) {
	switch v := v.(type) {
	case string:
		quote(b, v)
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			write(b, e)
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
			write(b, v[k])
		}
		b.WriteByte('}')
	default:
		scalar(b, v)
	}
}

// scalar writes a value that is neither a text nor a container.
func scalar(b *strings.Builder, v any) {
	data, _ := gojq.Marshal(v) // it has no error to give
	b.Write(data)
}

// quote writes a text in pieces: the machine's own writer would need several times the memory of a large one.
func quote(b *strings.Builder, s string) {
	const piece = 32 << 10
	if quotedLength(s) == int64(len(s))+2 { // as it is
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

package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// shortest is the length of the shortest text that is searched for. A shorter one would be found where it is not the
	// secret.
	shortest = 8
	// maxMixed is the length of the longest text that is searched for in every combination of encodings. For a longer one,
	// the inner encoding is at most one level of JSON.
	maxMixed = 1 << 10
	// maxEscaped bounds the growth of a text in nested JSON: each level may double the backslashes of the level before.
	maxEscaped = 16
	// jsonLevels is how many levels of JSON strings within JSON strings are searched.
	jsonLevels = 3
)

// forms returns the encodings in which a text is searched for, without duplicates: plain, in JSON strings (also nested
// ones), in URLs, in HTML, in hexadecimal and in base64; JSON strings also within each of the others.
func forms(text string) []string {
	var all list
	all.add(text)
	inner := []string{text}
	for i, escape := range []func(string) string{escapeMinimal, escapeHTML, escapeASCII, escapeSlashes} {
		escaped := text
		for level := range jsonLevels {
			if escaped = escape(escaped); len(escaped) > maxEscaped*len(text) {
				break
			}
			all.add(escaped)
			if level == 0 || level == 1 && len(text) <= maxMixed {
				inner = append(inner, escaped)
			}
			if i > 0 && level == 0 {
				all.add(escapeMinimal(escaped))
			}
		}
	}
	slices.Sort(inner)
	for _, plain := range slices.Compact(inner) {
		for _, encoded := range urlForms(plain) {
			all.add(encoded)
			all.add(lowerEscapes(encoded))
		}
		inHex := hex.EncodeToString([]byte(plain))
		all.add(inHex)
		all.add(strings.ToUpper(inHex))
		for _, encoded := range base64Forms(plain) {
			all.add(encoded)
		}
	}
	for _, plain := range []string{text, escapeMinimal(text)} {
		for _, encoded := range htmlForms(plain) {
			all.add(encoded)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// list collects encodings.
type list []string

// add adds an encoding, unless it is too short to be searched for or is part of the mark.
func (l *list) add(form string) {
	if len(form) >= shortest && !strings.Contains(Mark, form) {
		*l = append(*l, form)
	}
}

// escapeMinimal returns a text as in a JSON string, with only the required escapes.
func escapeMinimal(text string) string {
	quoted := quote(text)
	return quoted[1 : len(quoted)-1]
}

// escapeHTML returns a text as in a JSON string with <, > and & escaped, too, as encoding/json writes it.
func escapeHTML(text string) string {
	quoted, _ := json.Marshal(text) //nolint:errchkjson // texts always encode
	return string(quoted[1 : len(quoted)-1])
}

// escapeASCII returns a text as in a JSON string of ASCII characters, as Python writes it.
func escapeASCII(text string) string {
	var b strings.Builder
	for _, c := range escapeMinimal(text) {
		switch {
		case c < utf8.RuneSelf:
			b.WriteRune(c)
		case c >= 0x10000:
			c -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	return b.String()
}

// escapeSlashes returns a text as in a JSON string that PHP writes: of ASCII characters, with slashes escaped.
func escapeSlashes(text string) string { return strings.ReplaceAll(escapeASCII(text), "/", `\/`) }

// The characters that are not escaped in URLs in addition to letters and digits, by the language or standard of the
// writer.
const (
	unreserved   = "-_.~"
	javaForm     = "-_.*"
	jsComponent  = "-_.!~*'()"
	jsURI        = jsComponent + ";,/?:@&=+$#"
	pythonPath   = unreserved + "/"
	rfc3986Path  = unreserved + "!$&'()*+,;=:@/"
	rfc3986Query = rfc3986Path + "?"
)

// urlForms returns the forms of a text in URLs and HTML forms.
func urlForms(text string) []string {
	query := url.QueryEscape(text)
	out := []string{query, url.PathEscape(text), (&url.URL{Path: text}).EscapedPath(),
		strings.ReplaceAll(query, "+", "%20"), url.QueryEscape(query)}
	for _, kept := range []string{javaForm, jsComponent, jsURI, pythonPath, rfc3986Path, rfc3986Query} {
		escaped := percent(text, kept)
		out = append(out, escaped)
		if kept == javaForm {
			out = append(out, strings.ReplaceAll(escaped, "%20", "+"))
		}
	}
	return out
}

// percent escapes all bytes of a text but letters, digits and those of kept.
func percent(text, kept string) string {
	const digits = "0123456789ABCDEF"
	out := make([]byte, 0, len(text))
	for i := range len(text) {
		c := text[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(kept, c) >= 0 {
			out = append(out, c)
		} else {
			out = append(out, '%', digits[c>>4], digits[c&15])
		}
	}
	return string(out)
}

// lowerEscapes writes the hexadecimal digits of %XX in lower case.
func lowerEscapes(text string) string {
	if strings.IndexByte(text, '%') < 0 {
		return text
	}
	out := []byte(text)
	for i := 0; i+2 < len(out); i++ {
		if out[i] == '%' {
			copy(out[i+1:], strings.ToLower(string(out[i+1:i+3])))
		}
	}
	return string(out)
}

// htmlForms returns the forms of a text in HTML and XML.
func htmlForms(text string) []string {
	escaped := html.EscapeString(text)
	out := []string{escaped}
	for _, apostrophe := range []string{"&#39;", "&#x27;", "&apos;", "'"} {
		other := strings.ReplaceAll(strings.ReplaceAll(escaped, "&#34;", "&quot;"), "&#39;", apostrophe)
		out = append(out, other, strings.ReplaceAll(other, "&quot;", `"`))
	}
	return out
}

// base64Forms returns the forms of a text in base64, at every offset of the text in the encoded bytes. The first and
// the last character are omitted where they also depend on adjacent bytes.
func base64Forms(text string) []string {
	const bitsOfByte, bitsOfDigit, groups = 8, 6, 3
	var out []string
	for before := range groups {
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			encoded := encoding.EncodeToString([]byte(strings.Repeat("\x00", before) + text))
			first, last := (before*bitsOfByte+bitsOfDigit-1)/bitsOfDigit, (before+len(text))*bitsOfByte/bitsOfDigit
			out = append(out, encoded[first:last])
		}
	}
	return out
}

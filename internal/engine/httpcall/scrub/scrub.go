// Package scrub takes secrets out of what an exchange brought back, so that a service that echoes a request, or an error that quotes
// one, does not carry a secret into a history, a row or a log.
//
//	s := scrub.New(token, password)
//	text, content := s.Text(text), s.Value(content)
//
// It knows the usual spellings of a value: as it is, escaped as in JSON and URLs, in base64 (whatever stands before it) and in
// hexadecimal; and of a value that is a URL its parts. Values shorter than [Shortest] are left alone: they would be found in every second text.
package scrub

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/fault"
)

const (
	// Shortest is the length in bytes from which on a value is looked for.
	Shortest = 8
	// Mark is what stands in a value's place.
	Mark = "⟦redacted⟧"
)

// Scrubber takes out the values it was made of. A nil one changes nothing.
type Scrubber struct {
	values   []string
	replacer *strings.Replacer
}

// New returns a scrubber; nil where no value is long enough.
func New(values ...string) *Scrubber {
	s := &Scrubber{}
	var spellings []string
	for _, value := range values {
		for _, v := range append(parts(value), value) {
			if len(v) >= Shortest && !slices.Contains(s.values, v) {
				s.values = append(s.values, v)
				spellings = append(spellings, spell(v)...)
			}
		}
	}
	if len(s.values) == 0 {
		return nil
	}
	// The longest first: where one is part of another, all of it has to go.
	slices.SortFunc(spellings, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	pairs := make([]string, 0, 2*len(spellings))
	for _, spelling := range slices.Compact(spellings) {
		pairs = append(pairs, spelling, Mark)
	}
	s.replacer = strings.NewReplacer(pairs...)
	return s
}

// parts gives what comes up by itself of a value that is a URL: requests are told without its password and its fragment, and with
// parameters beside its own.
func parts(value string) []string {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" {
		return nil
	}
	u.Fragment, u.RawFragment = "", ""
	password, _ := u.User.Password()
	out := []string{u.String(), u.Redacted(), u.RequestURI(), u.Path, u.EscapedPath(), u.User.Username(), password}
	for _, parameter := range u.Query() {
		out = append(out, parameter...)
	}
	return out
}

// escapePath is a text as it stands in the path of a URL that was made with it.
func escapePath(v string) string {
	if plain, err := url.PathUnescape(v); err == nil {
		v = plain
	}
	return (&url.URL{Path: v}).EscapedPath()
}

// spell gives the spellings of a value: as it is, in JSON, in JSON within JSON, and each of those encoded.
func spell(v string) []string {
	var out []string
	for _, plain := range []string{v, escape(v), escapeMore(v), escape(escape(v)), escapeMore(escapeMore(v))} {
		out = append(out, plain, url.QueryEscape(plain), url.PathEscape(plain), escapePath(plain), strings.ReplaceAll(url.QueryEscape(plain), "+", "%20"),
			hex.EncodeToString([]byte(plain)), strings.ToUpper(hex.EncodeToString([]byte(plain))))
		for before := range 3 {
			for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				encoded := encoding.EncodeToString([]byte(strings.Repeat("\x00", before) + plain))
				// The first and the last character may be made of bytes beside the value, too.
				first, last := (before*8+5)/6, (before+len(plain))*8/6
				out = append(out, encoded[first:last])
			}
		}
	}
	return out
}

// escape is a text as it stands in JSON.
func escape(v string) string {
	escaped, err := jq.EncodeJSON(v)
	if err != nil {
		return v
	}
	return string(escaped[1 : len(escaped)-1])
}

// escapeMore is escape with <, > and & escaped as well, which some do.
func escapeMore(v string) string {
	escaped, err := json.Marshal(v)
	if err != nil {
		return v
	}
	return string(escaped[1 : len(escaped)-1])
}

// Text takes the values out of a text.
func (s *Scrubber) Text(text string) string {
	if s == nil {
		return text
	}
	return s.replacer.Replace(text)
}

// Error takes the values out of the words of an error. A fault stays the fault it is; of any other error only the words are left where
// there was something to take out.
func (s *Scrubber) Error(err error) error {
	if s == nil || err == nil {
		return err
	}
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		marked := *f
		marked.Message, marked.Cause = s.Text(f.Message), s.Error(f.Cause)
		return &marked
	}
	if text := s.Text(err.Error()); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// Bytes takes the values out of a body.
func (s *Scrubber) Bytes(body []byte) []byte {
	if s == nil {
		return body
	}
	return []byte(s.replacer.Replace(string(body)))
}

// Value takes the values out of a JSON value, its keys and numbers included. The value itself is not changed.
func (s *Scrubber) Value(v any) any {
	if s == nil {
		return v
	}
	switch v := v.(type) {
	case string:
		return s.Text(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = s.Value(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[s.Text(name)] = s.Value(member)
		}
		return out
	case nil, bool:
		return v
	}
	if text := fmt.Sprint(v); s.Text(text) != text {
		return Mark
	}
	return v
}

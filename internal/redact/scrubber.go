package redact

import (
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// Scrubber replaces given values by marks, in all encodings of [Finder]. Of a value that is a URL it also replaces the
// parts. It ignores values that are too short to be searched for. A nil Scrubber changes nothing.
type Scrubber struct{ finder Finder }

// NewScrubber returns a scrubber of values; nil where none is long enough.
func NewScrubber(values ...string) *Scrubber {
	var all []string
	for _, value := range values {
		all = append(append(all, value), parts(value)...)
		if plain, err := url.PathUnescape(value); err == nil {
			all = append(all, plain) // a value that is escaped already is not escaped again in the path of a URL
		}
	}
	slices.Sort(all)
	s := &Scrubber{}
	if s.finder.Add(slices.Compact(all)...); !s.finder.Any() {
		return nil
	}
	return s
}

// parts returns the parts of a value that is a URL which may occur separately: errors quote requests without the
// password and the fragment of the URL, and with further parameters.
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

// Text replaces the values in a text.
func (s *Scrubber) Text(text string) string {
	if s == nil {
		return text
	}
	text, _ = s.finder.Replace(text)
	return text
}

// Error replaces the values in the message of an error. An [apperror.Error] keeps its class and reason. Any other error
// is replaced by an error with the new message alone, where the message has changed.
func (s *Scrubber) Error(err error) error {
	if s == nil || err == nil {
		return err
	}
	if f, ok := errors.AsType[*apperror.Error](err); ok {
		marked := *f
		marked.Message, marked.Cause = s.Text(f.Message), s.Error(f.Cause)
		return &marked
	}
	if text := s.Text(err.Error()); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// Bytes replaces the values in a body.
func (s *Scrubber) Bytes(body []byte) []byte {
	if s == nil {
		return body
	}
	return []byte(s.Text(string(body)))
}

// Value returns a JSON value with the values replaced, also in its keys and numbers. v itself is not changed.
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

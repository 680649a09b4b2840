// Package scrub takes secrets out of what an exchange brought back, so that a service that echoes a request, or an error that quotes
// one, does not carry a secret into a history, a row or a log.
//
//	s := scrub.New(token, password)
//	text, content := s.Text(text), s.Value(content)
//
// It finds a value in all encodings of package redact; and of a value that is a URL its parts. Values that are too short to be searched
// for there are left alone.
package scrub

import (
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

// Scrubber takes out the values it was made of. A nil one changes nothing.
type Scrubber struct{ finder redact.Finder }

// New returns a scrubber; nil where no value is long enough.
func New(values ...string) *Scrubber {
	var all []string
	for _, value := range values {
		all = append(append(all, value), parts(value)...)
		if plain, err := url.PathUnescape(value); err == nil {
			all = append(all, plain) // a value that is escaped already is escaped no further in the path of a URL
		}
	}
	slices.Sort(all)
	s := &Scrubber{}
	if s.finder.Add(slices.Compact(all)...); !s.finder.Any() {
		return nil
	}
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

// Text takes the values out of a text.
func (s *Scrubber) Text(text string) string {
	if s == nil {
		return text
	}
	text, _ = s.finder.Replace(text)
	return text
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
	return []byte(s.Text(string(body)))
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
		return redact.Mark
	}
	return v
}

// Package opaque replaces the secrets in a request by placeholders. A placeholder is plain text that shows which secret
// it stands for, ⟦secrets.name⟧, so that the request can be stored and shown; the sender replaces it by the secret.
//
//	placeholders := opaque.New()
//	placeholders.Reserve(url, body)    // all of the request first
//	url, body := placeholders.Text(url), placeholders.Value(body)
//	send(url, body, placeholders.Secrets)
//
// Data cannot be mistaken for a placeholder: a placeholder that occurs in the request already gets another spelling.
package opaque

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl"
)

const (
	left  = "⟦"
	right = "⟧"
)

// Placeholders are the placeholders of one request.
type Placeholders struct {
	// Secrets maps each placeholder to its secret; nil if there is none.
	Secrets map[string]dsl.Secret

	reserved    []string          // texts that contain what could be a placeholder
	byReference map[string]string // placeholders by reference
}

// New returns the placeholders of a request that has none yet.
func New() *Placeholders { return &Placeholders{} }

// Reserve records the texts in values: no placeholder will be equal to a part of them.
func (m *Placeholders) Reserve(values ...any) {
	for _, v := range values {
		switch v := v.(type) {
		case string:
			if strings.Contains(v, left) {
				m.reserved = append(m.reserved, v)
			}
		case dsl.Opaque:
			var beside strings.Builder // all texts as one, as their concatenation may form a placeholder
			for _, part := range v {
				beside.WriteString(part.Text)
			}
			m.Reserve(beside.String())
		case []any:
			m.Reserve(v...)
		case map[string]any:
			for name, member := range v {
				m.Reserve(name, member)
			}
		}
	}
}

// Text converts a string or a dsl.Opaque to text.
func (m *Placeholders) Text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	parts, _ := v.(dsl.Opaque)
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(part.Text)
		if part.Secret != nil {
			b.WriteString(m.placeholder(*part.Secret))
		}
	}
	return b.String()
}

// Texts applies Text to each member.
func (m *Placeholders) Texts(object map[string]any) map[string]string {
	if object == nil {
		return nil
	}
	out := make(map[string]string, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		out[name] = m.Text(object[name])
	}
	return out
}

// Value returns a JSON value with placeholders in it. A value without secrets is returned as it is.
func (m *Placeholders) Value(v any) any {
	switch v := v.(type) {
	case dsl.Opaque:
		return m.Text(v)
	case []any:
		if !holds(v) {
			return v
		}
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = m.Value(item)
		}
		return out
	case map[string]any:
		if !holds(v) {
			return v
		}
		out := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out[name] = m.Value(v[name])
		}
		return out
	}
	return v
}

// holds reports whether a value contains a secret.
func holds(v any) bool {
	switch v := v.(type) {
	case dsl.Opaque:
		return true
	case []any:
		return slices.ContainsFunc(v, holds)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), holds)
	}
	return false
}

// placeholder returns the placeholder of a secret, the same for each reference.
func (m *Placeholders) placeholder(s dsl.Secret) string {
	// No placeholder contains the beginning of another, and none contains the character that replaces invalid bytes.
	plain := strings.NewReplacer(left, "", right, "", "\uFFFD", "").Replace(s.String())
	key := strings.Join(append([]string{s.Name}, s.Members...), "\x00")
	if text, known := m.byReference[key]; known {
		return text
	}
	if m.Secrets == nil {
		m.Secrets, m.byReference = map[string]dsl.Secret{}, map[string]string{}
	}
	text := left + plain + right
	for n := 2; m.taken(text); n++ {
		text = left + plain + "#" + strconv.Itoa(n) + right
	}
	m.Secrets[text], m.byReference[key] = s, text
	return text
}

func (m *Placeholders) taken(text string) bool {
	_, twice := m.Secrets[text]
	return twice || slices.ContainsFunc(m.reserved, func(reserved string) bool { return strings.Contains(reserved, text) })
}

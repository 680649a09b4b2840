// Package opaque puts marks into a request where secrets belong. A mark is plain text that a person reads as what it stands for,
// ⟦secrets.name⟧, so that the request can be kept and shown; whoever sends it puts the secret in its place.
//
//	marks := opaque.New()
//	marks.See(url, body)               // all of the request first
//	url, body := marks.Text(url), marks.Value(body)
//	send(url, body, marks.Secrets)
//
// No data can pass for a mark: one that occurs in the request already is given another spelling.
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

// Marks are the marks of one request.
type Marks struct {
	// Secrets is what each mark stands for; nil where there is none.
	Secrets map[string]dsl.Secret

	given  []string          // texts with what could be a mark in them
	marked map[string]string // by the reference
}

// New returns the marks of a request that has none yet.
func New() *Marks { return &Marks{} }

// See takes note of the texts in values, which may pass for marks.
func (m *Marks) See(values ...any) {
	for _, v := range values {
		switch v := v.(type) {
		case string:
			if strings.Contains(v, left) {
				m.given = append(m.given, v)
			}
		case dsl.Opaque:
			var beside strings.Builder // all texts as one, as they may meet
			for _, part := range v {
				beside.WriteString(part.Text)
			}
			m.See(beside.String())
		case []any:
			m.See(v...)
		case map[string]any:
			for name, member := range v {
				m.See(name, member)
			}
		}
	}
}

// Text makes a text of a string or a dsl.Opaque.
func (m *Marks) Text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	parts, _ := v.(dsl.Opaque)
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(part.Text)
		if part.Secret != nil {
			b.WriteString(m.mark(*part.Secret))
		}
	}
	return b.String()
}

// Texts does for each member what Text does.
func (m *Marks) Texts(object map[string]any) map[string]string {
	if object == nil {
		return nil
	}
	out := make(map[string]string, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		out[name] = m.Text(object[name])
	}
	return out
}

// Value gives a JSON value with marks in it. What holds no secret is given back as it is.
func (m *Marks) Value(v any) any {
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

// holds tells whether a secret is in a value.
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

// mark gives a secret its mark: the same to each mention of it.
func (m *Marks) mark(s dsl.Secret) string {
	// No mark has another's beginning within it, and none has what invalid bytes become on the way.
	plain := strings.NewReplacer(left, "", right, "", "\uFFFD", "").Replace(s.String())
	key := strings.Join(append([]string{s.Name}, s.Members...), "\x00")
	if mark, known := m.marked[key]; known {
		return mark
	}
	if m.Secrets == nil {
		m.Secrets, m.marked = map[string]dsl.Secret{}, map[string]string{}
	}
	mark := left + plain + right
	for n := 2; m.taken(mark); n++ {
		mark = left + plain + "#" + strconv.Itoa(n) + right
	}
	m.Secrets[mark], m.marked[key] = s, mark
	return mark
}

func (m *Marks) taken(mark string) bool {
	_, twice := m.Secrets[mark]
	return twice || slices.ContainsFunc(m.given, func(text string) bool { return strings.Contains(text, mark) })
}

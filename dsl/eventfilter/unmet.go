package eventfilter

import "strings"

// keyCondition begins the name of the condition on a correlation key.
const keyCondition = "correlate."

// KeyOf returns the correlation key that a condition concerns, and whether it concerns one.
func KeyOf(condition string) (name string, isKey bool) {
	return strings.CutPrefix(condition, keyCondition)
}

// Unmet returns the names of all conditions that an event does not meet, as [Match] names the first of them; none where
// the event matches.
func (m *Matcher) Unmet(event map[string]any) []string {
	e := evaluation{vars: m.vars}
	var names []string
	for _, a := range m.with {
		if !a.meets(event, &e) {
			names = append(names, a.name)
		}
	}
	for _, k := range m.keys {
		if _, ok := m.key(k, event, &e); !ok {
			names = append(names, keyCondition+k.name)
		}
	}
	return names
}

// Value returns what an event has for the condition with a name: its attribute, or its value of the correlation key. It
// is nil where the event has none.
func (m *Matcher) Value(condition string, event map[string]any) any {
	name, isKey := KeyOf(condition)
	if !isKey {
		return attributeOf(event, condition)
	}
	e := evaluation{vars: m.vars}
	for _, k := range m.keys {
		if k.name == name {
			value, _ := e.run(k.from, event) // an expression that fails gives no value
			return value
		}
	}
	return nil
}

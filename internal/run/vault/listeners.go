package vault

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/event"
)

// sealedExpect begins what stands in place of the value that a listener expects of a correlation key. No event has such a value, so a
// listener whose key is gone is matched with nothing.
const sealedExpect = `"` + "\u27e6sealed\u27e7"

// Listen implements [event.Store]. The values that a run expects of correlation keys are data of the run: they are kept sealed.
func (s *Events) Listen(ctx context.Context, l event.Listener) error {
	if s.vault.keys.Seals() {
		var err error
		if l.Spec.Filters, err = s.vault.sealExpected(l); err != nil {
			return err
		}
	}
	return s.EventStore.Listen(ctx, marked(l))
}

// GetListener implements [event.Rows].
func (s *Events) GetListener(ctx context.Context, project, id string) (event.Listener, bool, error) {
	l, found, err := s.EventStore.GetListener(ctx, project, id)
	s.vault.openExpected(&l)
	return l, found, err
}

// aboutExpect is what a value is authenticated with.
func aboutExpect(l event.Listener, filter int, name string) []string {
	return []string{"expect", l.Project, l.ID, strconv.Itoa(filter), name}
}

// sealExpected returns the filters of a listener with sealed values, and leaves the listener as it is.
func (v *Vault) sealExpected(l event.Listener) ([]event.Filter, error) {
	filters := slices.Clone(l.Spec.Filters)
	for i := range filters {
		filters[i].Correlate = maps.Clone(filters[i].Correlate)
		for name, key := range filters[i].Correlate {
			if key.Expect == nil {
				continue
			}
			sealed, err := v.keys.Seal(key.Expect, aboutExpect(l, i, name)...)
			if err != nil {
				return nil, fmt.Errorf("sealing what listener %s expects: %w", l.ID, err)
			}
			key.Expect = json.RawMessage(sealedExpect + base64.StdEncoding.EncodeToString(sealed) + `"`)
			filters[i].Correlate[name] = key
		}
	}
	return filters, nil
}

// openExpected opens the values of a listener, in place. Those that do not open stay as they are.
func (v *Vault) openExpected(l *event.Listener) {
	for i, f := range l.Spec.Filters {
		for name, key := range f.Correlate {
			text, sealed := strings.CutPrefix(string(key.Expect), sealedExpect)
			if !sealed {
				continue
			}
			if plain, ok := v.expected(text, aboutExpect(*l, i, name)); ok {
				key.Expect = plain
				f.Correlate[name] = key
			}
		}
	}
}

// expected opens one value. The same listeners are read for every batch of events, so what was opened is remembered.
func (v *Vault) expected(text string, about []string) (json.RawMessage, bool) {
	v.mu.Lock()
	plain, known := v.opened[text]
	v.mu.Unlock()
	if known {
		return plain, true
	}
	sealed, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(text, `"`))
	if err != nil {
		return nil, false
	}
	if plain, err = v.keys.Open(sealed, about...); err != nil {
		return nil, false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.opened) >= maxKnown {
		v.opened = map[string]json.RawMessage{}
	}
	v.opened[text] = plain
	return plain, true
}

// Listeners returns listeners of a run as they may be shown: what they expect of correlation keys is opened, and marks stand for what is
// sensitive in it. A value that does not open becomes nil. The listeners that are given stay as they are.
func (v *Vault) Listeners(ctx context.Context, runID string, list []event.Listener) ([]event.Listener, error) {
	s, err := v.reread(ctx, runID)
	if err != nil {
		return nil, err
	}
	shown := slices.Clone(list)
	for i := range shown {
		filters := slices.Clone(shown[i].Spec.Filters)
		for n := range filters {
			filters[n].Correlate = maps.Clone(filters[n].Correlate)
		}
		shown[i].Spec.Filters = filters
		v.openExpected(&shown[i])
		for _, f := range filters {
			for name, key := range f.Correlate {
				key.Expect = s.expected(name, key.Expect)
				f.Correlate[name] = key
			}
		}
	}
	return shown, nil
}

// expected is the value that a correlation key must have, as it may be shown.
func (s *secrecy) expected(name string, value json.RawMessage) json.RawMessage {
	if value == nil || strings.HasPrefix(string(value), sealedExpect) {
		return nil
	}
	named, err := json.Marshal(map[string]json.RawMessage{name: value})
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	hidden, _ := s.value(emitted, named)
	var shown map[string]json.RawMessage
	if json.Unmarshal(hidden, &shown) != nil { // it was hidden as a whole
		return hidden
	}
	return shown[name]
}

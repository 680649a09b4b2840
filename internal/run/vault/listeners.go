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

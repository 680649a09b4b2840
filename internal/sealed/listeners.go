package sealed

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jellydator/ttlcache/v3"

	"github.com/signalbox-dev/signalbox/internal/event"
)

// sealedExpect is the prefix of the sealed value that a listener expects of a correlation key. No event has such a
// value, so a listener with a value that does not open matches nothing.
const sealedExpect = `"` + "\u27e6sealed\u27e7"

// Listen implements [event.Store]. The values that a run expects of correlation keys are values of the run: they are
// stored sealed.
func (s *Events) Listen(ctx context.Context, l event.Listener) (event.Listening, error) {
	open := l
	look := event.Lookback{Limit: s.earlier.Limit, Match: func(events []event.Event) ([]event.Delivery, int64) {
		s.sealer.openEvents(events)
		return s.earlier.Match(open, events)
	}}
	l.Entries = event.EntriesOf(l.Spec)
	for i, e := range l.Entries {
		var err error
		if l.Entries[i].Values, err = s.sealer.entryValues(l.Project, e); err != nil {
			return event.Listening{}, err
		}
	}
	if s.sealer.keys.Seals() {
		var err error
		if l.Spec.Filters, err = s.sealer.sealExpected(l); err != nil {
			return event.Listening{}, err
		}
	}
	return s.EventStore.Listen(ctx, marked(l), look)
}

// FindListeners implements [event.Rows].
func (s *Events) FindListeners(ctx context.Context, project string, lookups []event.Lookup) (event.Found, error) {
	stored := make([]event.Lookup, 0, len(lookups))
	for _, w := range lookups {
		if w.Values == "" {
			stored = append(stored, w)
			continue
		}
		texts, err := s.sealer.keys.Indexes([]byte(w.Values), aboutEntry(project, w.Entry)...)
		if err != nil {
			return event.Found{}, fmt.Errorf("finding listeners: %w", err)
		}
		for _, text := range append(texts, openValues(project, w.Entry)) {
			w.Values = text
			stored = append(stored, w)
		}
	}
	found, err := s.EventStore.FindListeners(ctx, project, stored)
	for i := range found.Listeners {
		s.sealer.openExpected(&found.Listeners[i])
	}
	return found, err
}

// entryValues returns the values of an entry as they are stored.
func (sl *Sealer) entryValues(project string, e event.Entry) (string, error) {
	switch {
	case e.Values == "":
		return "", nil
	case !sl.keys.Seals():
		return openValues(project, e), nil
	}
	text, err := sl.keys.Index([]byte(e.Values), aboutEntry(project, e)...)
	if err != nil {
		return "", fmt.Errorf("indexing the expected values of a listener: %w", err)
	}
	return text, nil
}

// openValues returns the values of an entry as they are stored while values are not sealed: as a digest, because an
// index has no long texts.
func openValues(project string, e event.Entry) string {
	h := sha256.New()
	for _, part := range append(aboutEntry(project, e), e.Values) {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part) // never fails, according to its documentation
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// aboutEntry returns what the digest of an entry depends on beside its values. The digests of two projects, or of two
// shapes, do not reveal that values are equal.
func aboutEntry(project string, e event.Entry) []string {
	return []string{"entry", project, e.Type, e.Shape}
}

// GetListener implements [event.Rows].
func (s *Events) GetListener(ctx context.Context, project, id string) (event.Listener, bool, error) {
	l, found, err := s.EventStore.GetListener(ctx, project, id)
	s.sealer.openExpected(&l)
	return l, found, err
}

// aboutExpect returns what an expected value is authenticated with.
func aboutExpect(l event.Listener, filter int, name string) []string {
	return []string{"expect", l.Project, l.ID, strconv.Itoa(filter), name}
}

// sealExpected returns the filters of a listener with sealed values. It does not change the listener.
func (sl *Sealer) sealExpected(l event.Listener) ([]event.Filter, error) {
	filters := slices.Clone(l.Spec.Filters)
	for i := range filters {
		filters[i].Correlate = maps.Clone(filters[i].Correlate)
		for name, key := range filters[i].Correlate {
			if key.Expect == nil {
				continue
			}
			sealed, err := sl.keys.Seal(key.Expect, aboutExpect(l, i, name)...)
			if err != nil {
				return nil, fmt.Errorf("sealing the expected values of listener %s: %w", l.ID, err)
			}
			key.Expect = json.RawMessage(sealedExpect + base64.StdEncoding.EncodeToString(sealed) + `"`)
			filters[i].Correlate[name] = key
		}
	}
	return filters, nil
}

// openExpected opens the values of a listener, in place. A value that does not open stays unchanged.
func (sl *Sealer) openExpected(l *event.Listener) {
	for i, f := range l.Spec.Filters {
		for name, key := range f.Correlate {
			text, sealed := strings.CutPrefix(string(key.Expect), sealedExpect)
			if !sealed {
				continue
			}
			if plain, ok := sl.expected(text, aboutExpect(*l, i, name)); ok {
				key.Expect = plain
				f.Correlate[name] = key
			}
		}
	}
}

// expected opens one value. It caches the result, because the same listeners are read for every batch of events.
func (sl *Sealer) expected(text string, about []string) (json.RawMessage, bool) {
	if cached := sl.opened.Get(text); cached != nil {
		return cached.Value(), true
	}
	sealed, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(text, `"`))
	if err != nil {
		return nil, false
	}
	plain, err := sl.keys.Open(sealed, about...)
	if err != nil {
		return nil, false
	}
	return sl.opened.Set(text, plain, ttlcache.NoTTL).Value(), true
}

// Listeners returns copies of a run's listeners that may be shown: the expected values of correlation keys are opened
// and redacted. A value that does not open becomes nil.
func (sl *Sealer) Listeners(ctx context.Context, runID string, list []event.Listener) ([]event.Listener, error) {
	s, err := sl.reread(ctx, runID)
	if err != nil {
		return nil, err
	}
	shown := slices.Clone(list)
	for i := range shown {
		filters := clonedFilters(shown[i])
		shown[i].Spec.Filters = filters
		sl.openExpected(&shown[i])
		for _, f := range filters {
			for name, key := range f.Correlate {
				key.Expect = s.expected(name, key.Expect)
				f.Correlate[name] = key
			}
		}
	}
	return shown, nil
}

// OpenToCompare returns copies of events and listeners with their original values, which are compared and not shown.
// What does not open stays as it is.
func (sl *Sealer) OpenToCompare(events []event.Event, listeners []event.Listener) ([]event.Event, []event.Listener) {
	events, listeners = slices.Clone(events), slices.Clone(listeners)
	sl.openEvents(events)
	for i := range listeners {
		listeners[i].Spec.Filters = clonedFilters(listeners[i])
		sl.openExpected(&listeners[i])
	}
	return events, listeners
}

// clonedFilters returns a copy of a listener's filters whose expected values can be changed.
func clonedFilters(l event.Listener) []event.Filter {
	filters := slices.Clone(l.Spec.Filters)
	for n := range filters {
		filters[n].Correlate = maps.Clone(filters[n].Correlate)
	}
	return filters
}

// expected returns the redacted value that a correlation key must have.
func (s *runSecrets) expected(name string, value json.RawMessage) json.RawMessage {
	if value == nil || strings.HasPrefix(string(value), sealedExpect) {
		return nil
	}
	named, err := json.Marshal(map[string]json.RawMessage{name: value})
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	hidden, _ := s.value(emitted(), named)
	var shown map[string]json.RawMessage
	if json.Unmarshal(hidden, &shown) != nil { // the value was hidden as a whole
		return hidden
	}
	return shown[name]
}

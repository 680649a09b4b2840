package reconciler

import (
	"cmp"
	"slices"
	"sync"

	"github.com/signalbox-dev/signalbox/internal/run"
)

// remembered bounds each kind of thing that is remembered. Beyond it that kind is forgotten: all is found out again.
const remembered = 10_000

// memory is what one process knows from earlier passes. It saves work and repeated reports; nothing depends on it.
type memory struct {
	mu sync.Mutex
	// namespaceID is where Temporal was in the last pass.
	namespaceID string
	// walked is the run at which the last round ended, looked the one at which the last bounded look at others did.
	walked, looked string
	// withheld is why runs were left alone in the last pass, empty when none were.
	withheld string
	// foreign and reopened are what was reported, by execution.
	foreign  map[string]run.Correction
	reopened map[string]struct{}
	// failed are the runs whose comparison failed and was logged.
	failed map[string]struct{}
}

func newMemory() memory {
	return memory{
		foreign: map[string]run.Correction{}, reopened: map[string]struct{}{}, failed: map[string]struct{}{},
	}
}

// remember puts v under key, and tells whether it is new.
func remember[V any](m *memory, in map[string]V, key string, v V) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, before := in[key]
	if !before && len(in) >= remembered {
		clear(in)
	}
	in[key] = v
	return !before
}

func recall[V any](m *memory, in map[string]V, key string) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := in[key]
	return v, ok
}

// moved tells whether Temporal was another place in the last pass, or before the first one at home, and notes where it is
// when it is to.
func (m *memory) moved(id, home string, note bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := cmp.Or(m.namespaceID, home)
	moved := before != "" && before != id
	if note {
		m.namespaceID = id
	}
	return moved
}

// turn returns where the last round ended.
func (m *memory) turn() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.walked
}

// walkedTo notes where a round ended.
func (m *memory) walkedTo(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.walked = id
}

// news notes why runs were left alone, and tells whether that is something to say.
func (m *memory) news(why string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	news := why != "" && m.withheld != why
	m.withheld = why
	return news
}

// bounded returns as many of the IDs, which are in order, as there may be: those after where it last ended, in turn.
func (m *memory) bounded(ids []string, most int, note bool) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(ids) <= most {
		return ids
	}
	at, _ := slices.BinarySearch(ids, m.looked+"\x00")
	ids = slices.Concat(ids[at:], ids[:at])[:most]
	if note {
		m.looked = ids[most-1]
	}
	return ids
}

package reconcile

import (
	"cmp"
	"slices"
	"sync"

	"github.com/jellydator/ttlcache/v3"

	"github.com/signalbox-dev/signalbox/internal/run"
)

// maxRemembered bounds each cache. What it does not hold is determined again.
const maxRemembered = 10_000

// memory holds what one process found in earlier passes. It avoids work and repeated reports; correctness does not
// depend on it.
type memory struct {
	mu sync.Mutex
	// namespaceID is the ID of Temporal's namespace in the last pass.
	namespaceID string
	// turnEnd is the last run that was compared in turn, boundedEnd the last one that bounded returned.
	turnEnd, boundedEnd string
	// withheld is why runs were not changed in the last pass; empty where there were none.
	withheld string
	// foreign and reopened hold what was reported, by execution ID: of a foreign one, what started it, as far as that is
	// known.
	foreign  *ttlcache.Cache[string, run.Identity]
	reopened *ttlcache.Cache[string, struct{}]
	// failed are the runs whose failed comparison was logged.
	failed *ttlcache.Cache[string, struct{}]
}

func newMemory() memory {
	return memory{
		foreign:  ttlcache.New(ttlcache.WithCapacity[string, run.Identity](maxRemembered)),
		reopened: ttlcache.New(ttlcache.WithCapacity[string, struct{}](maxRemembered)),
		failed:   ttlcache.New(ttlcache.WithCapacity[string, struct{}](maxRemembered)),
	}
}

// moved reports whether the namespace differs from that of the last pass; before the first pass, from the recorded one.
// It stores the namespace where note is set.
func (m *memory) moved(id, recorded string, note bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := cmp.Or(m.namespaceID, recorded)
	moved := before != "" && before != id
	if note {
		m.namespaceID = id
	}
	return moved
}

// turn returns the last run that was compared in turn.
func (m *memory) turn() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.turnEnd
}

// setTurn stores the last run that was compared in turn.
func (m *memory) setTurn(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turnEnd = id
}

// reasonChanged stores why runs were not changed, and reports whether that is a new reason, not empty.
func (m *memory) reasonChanged(why string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	changed := why != "" && m.withheld != why
	m.withheld = why
	return changed
}

// bounded returns at most limit of the IDs, which must be sorted: those after the last one that it returned before, in
// turn. It stores where it ends where note is set.
func (m *memory) bounded(ids []string, limit int, note bool) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(ids) <= limit {
		return ids
	}
	at, _ := slices.BinarySearch(ids, m.boundedEnd+"\x00")
	ids = slices.Concat(ids[at:], ids[:at])[:limit]
	if note {
		m.boundedEnd = ids[limit-1]
	}
	return ids
}

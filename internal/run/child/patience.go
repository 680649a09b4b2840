package child

import (
	"sync"
	"time"
)

// longest is how long a link is left alone at most.
const longest = 5 * time.Minute

// patience is which links are left alone for now, by run: each time they have to be for twice as long. It is this process's alone, and
// nothing depends on it but how often Temporal is asked in vain.
type patience struct {
	mu    sync.Mutex
	waits map[string]wait
}

type wait struct {
	until  time.Time
	length time.Duration
}

// over tells whether the run's time has come.
func (p *patience) over(runID string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !time.Now().Before(p.waits[runID].until)
}

// more leaves the run alone for longer than before.
func (p *patience) more(runID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	length := min(max(2*p.waits[runID].length, lookEvery), longest)
	p.waits[runID] = wait{time.Now().Add(length), length}
}

// sweep forgets what nobody has asked for since its time came: it was forgotten elsewhere.
func (p *patience) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, w := range p.waits {
		if time.Since(w.until) > longest {
			delete(p.waits, id)
		}
	}
}

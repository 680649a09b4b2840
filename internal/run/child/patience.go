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
	since, until time.Time
	length       time.Duration
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
	w := p.waits[runID]
	if w.since.IsZero() {
		w.since = time.Now()
	}
	w.length = min(max(2*w.length, lookEvery), longest)
	w.until = time.Now().Add(w.length)
	p.waits[runID] = w
}

// age is for how long the run has been left alone, over all times; zero when it is not.
func (p *patience) age(runID string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w, waits := p.waits[runID]; waits {
		return time.Since(w.since)
	}
	return 0
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

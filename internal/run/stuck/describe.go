package stuck

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run/problem"
	"github.com/signalbox-dev/signalbox/internal/run/stuck/verdict"
)

const (
	// describeEvery bounds the questions about single runs to fifty a second: thousands of them at once would saturate Temporal.
	describeEvery = time.Second / 50
	// width is how many of them are under way at once.
	width = 4
	// lookFor is how long an answer counts.
	lookFor = 15 * time.Second
)

// mayAsk is how many questions may be asked in a look that comes so long after the one before.
func mayAsk(elapsed time.Duration) int { return int(max(0, min(elapsed, lookEvery)) / describeEvery) }

// look is what Temporal said of a run when it was asked.
type look struct {
	at time.Time
	// since is since when the run had made no progress.
	since     time.Time
	execution verdict.Execution
}

// describe asks Temporal about the runs that nothing else tells of, those first that were asked about least recently, and judges them.
// Those whose turn does not come keep what was said of them.
func (p *pass) describe(ctx context.Context, candidates []Candidate, unclear []int, decisions []verdict.Decision) {
	looks := make(map[string]look, len(unclear))
	var turn []int
	for _, i := range unclear {
		c := candidates[i]
		l, known := p.w.looks[c.ID]
		if known = known && l.since.Equal(p.since(c)); known {
			looks[c.ID] = l
		}
		if !known || p.now.Sub(l.at) >= lookFor {
			turn = append(turn, i)
		}
	}
	slices.SortStableFunc(turn, func(a, b int) int { return looks[candidates[a].ID].at.Compare(looks[candidates[b].ID].at) })
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		slots = make(chan struct{}, width)
	)
	for _, i := range turn[:min(len(turn), p.mayAsk)] {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if l, ok := p.look(ctx, candidates[i]); ok {
				mu.Lock()
				defer mu.Unlock()
				looks[candidates[i].ID] = l
			}
		})
	}
	group.Wait()
	p.w.looks = looks
	for _, i := range unclear {
		l, known := looks[candidates[i].ID]
		if !known {
			decisions[i] = verdict.Decision{Action: verdict.Keep}
			continue
		}
		decisions[i] = verdict.Of(p.described(candidates[i], l.execution))
	}
}

// look asks about one run. A row that is behind its history is repaired first, by a worker: what looks like no progress may be none
// but the row's.
func (p *pass) look(ctx context.Context, c Candidate) (look, bool) {
	x, err := p.w.engine.Execution(ctx, c.ID)
	if err == nil {
		if code := verdict.Of(p.described(c, x)).Verdict.Code; code == problem.Unknown || code == problem.ExecutionClosed {
			var behind bool
			if behind, err = p.w.engine.Behind(ctx, c.Project, c.ID); behind {
				return look{}, false
			}
			if code == problem.ExecutionClosed {
				err = nil // its end is known, and cannot be written: that is what to tell
			}
		}
	}
	if err != nil {
		logger.FromContext(ctx).DebugContext(ctx, "Run without progress could not be described", "run_id", c.ID, "error", err)
		return look{}, false
	}
	return look{at: p.now, since: p.since(c), execution: x}, true
}

// since is since when a candidate makes no progress.
func (p *pass) since(c Candidate) time.Time {
	since, _ := verdict.Due(c.Row, p.now, p.w.opts.After)
	return since
}

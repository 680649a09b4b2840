package diagnose

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// describeEvery limits descriptions of single runs to fifty a second: thousands at once would saturate Temporal.
	describeEvery = time.Second / 50
	// maxConcurrent is how many descriptions are in progress at once.
	maxConcurrent = 4
	// descriptionTTL is how long a description is reused.
	descriptionTTL = 15 * time.Second
)

// maxDescriptions returns how many runs a pass may describe that begins elapsed after the previous one.
func maxDescriptions(elapsed time.Duration) int {
	return int(max(0, min(elapsed, passEvery)) / describeEvery)
}

// description is Temporal's description of a run at a time.
type description struct {
	at time.Time
	// since is the time from which the run had made no progress.
	since     time.Time
	execution Execution
}

// describe describes the runs that cannot be decided otherwise, the least recently described first, and decides them.
// Runs beyond the limit of this pass keep their verdict.
func (p *pass) describe(ctx context.Context, candidates []Candidate, unclear []int, decisions []Decision) {
	descriptions := make(map[string]description, len(unclear))
	var turn []int
	for _, i := range unclear {
		c := candidates[i]
		d, cached := p.w.descriptions[c.ID]
		if cached = cached && d.since.Equal(p.since(c)); cached {
			descriptions[c.ID] = d
		}
		if !cached || p.now.Sub(d.at) >= descriptionTTL {
			turn = append(turn, i)
		}
	}
	slices.SortStableFunc(turn, func(a, b int) int {
		return descriptions[candidates[a].ID].at.Compare(descriptions[candidates[b].ID].at)
	})
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		slots = make(chan struct{}, maxConcurrent)
	)
	for _, i := range turn[:min(len(turn), p.maxDescriptions)] {
		slots <- struct{}{}
		if p.limited.Load() {
			break
		}
		group.Go(func() {
			defer func() { <-slots }()
			if d, ok := p.describeRun(ctx, candidates[i]); ok {
				mu.Lock()
				defer mu.Unlock()
				descriptions[candidates[i].ID] = d
			}
		})
	}
	group.Wait()
	p.w.descriptions = descriptions
	for _, i := range unclear {
		d, cached := descriptions[candidates[i].ID]
		if !cached {
			decisions[i] = Decision{Action: Keep}
			continue
		}
		decisions[i] = Decide(p.described(candidates[i], d.execution))
	}
}

// describeRun describes one run. It has a worker repair a row that is behind its history, and then returns false: the
// run may have made progress that the row does not show.
func (p *pass) describeRun(ctx context.Context, c Candidate) (description, bool) {
	x, err := p.w.engine.Execution(ctx, c.ID)
	if err == nil {
		code := Decide(p.described(c, x)).Verdict.Code
		if unexplained := code == run.Unknown || code == run.TimerLate; unexplained || code == run.ExecutionClosed {
			var behind bool
			if behind, err = p.w.engine.Behind(ctx, c.Project, c.ID); behind {
				return description{}, false
			}
			if code == run.ExecutionClosed && !errors.Is(err, ErrLimited) {
				err = nil // the run has ended and its row cannot be written, which the verdict reports
			}
			if err == nil && unexplained {
				x.LacksPayload, err = p.w.engine.LacksPayload(ctx, c.ID)
			}
		}
	}
	if p.isLimited(err) {
		return description{}, false
	}
	if err != nil {
		logger.FromContext(ctx).DebugContext(ctx, "Run without progress could not be described", "run_id", c.ID, "error", err)
		return description{}, false
	}
	return description{at: p.now, since: p.since(c), execution: x}, true
}

// since returns the time from which a candidate has made no progress.
func (p *pass) since(c Candidate) time.Time {
	since, _ := Due(c.Row, p.now, p.w.opts.After)
	return since
}

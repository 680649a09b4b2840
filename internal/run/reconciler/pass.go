package reconciler

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/pause"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/home"
	"github.com/signalbox-dev/signalbox/internal/run/reconciler/pace"
	"github.com/signalbox-dev/signalbox/internal/run/reconciler/verdict"
)

const (
	// rowPage is how many rows are read at a time, lookChunk and walkChunk how many are read again before Temporal is
	// asked about them, so that the answers are compared with rows of just before.
	rowPage, lookChunk, walkChunk = 1000, 200, 20
	// looksPerSecond bounds the questions about runs that differ already, walksPerSecond those about runs that are
	// probably well, and walksPerPass how many of the latter one pass asks.
	looksPerSecond, walksPerSecond, walksPerPass = 500, 50, 1000
	// width is how many questions are under way at once.
	width = 8
	// strangersPerPass is how many runs one pass asks about that are probably in another Temporal. It bounds for how
	// long a process that is pointed at the wrong one keeps others from acting.
	strangersPerPass = 2000
	// maxListed bounds the executions that one pass holds. Beyond it, what is not listed is taken for listed.
	maxListed = 200_000
	// closedWithin is how long ago an execution may have ended to be looked for a row: two passes and some.
	closedWithin = 2*passEvery + time.Minute
	// importPages is how many pages of open imported runs one pass looks at.
	importPages = 10
	// secondLookAfter is how long a run that Temporal did not know is left before it is asked again.
	secondLookAfter = 5 * time.Second
	// repairedMost is how long a pass waits for the repairs that it has asked for, repairedEvery how often it looks.
	repairedMost, repairedEvery = 5 * time.Second, 50 * time.Millisecond
	// maxCorrections bounds a report's list.
	maxCorrections = 1000
)

// requested is a correction that a worker makes, and the position of its row before.
type requested struct {
	run.Correction

	position int64
}

// pass is one comparison of all rows with Temporal.
type pass struct {
	r      *Reconciler
	dry    bool
	enough func() bool
	// fast and slow are the paces of looks and walks.
	fast, slow pace.Pace

	// view is what this Temporal is to the runs.
	view home.View
	// moved tells that nothing can be concluded from what Temporal does not know.
	moved  bool
	listed map[string]run.Execution
	// partial tells that the list was cut short.
	partial bool
	// open are the runs that have an open row, walks those that are to be asked about in turn, in order.
	open  map[string]struct{}
	walks []string

	mu     sync.Mutex
	report run.Report
	// requested are the repairs that a worker was asked for.
	requested []requested
	missed    map[string]int64 // sequences of the rows that Temporal did not know
	since     time.Time        // of the first of them
	failed    error
}

func (p *pass) run(ctx context.Context) (err error) {
	if err := p.locate(ctx); err != nil {
		return err
	}
	p.moved = p.r.memory.moved(p.view.Here.NamespaceID, p.view.Home.NamespaceID, !p.dry)
	// Executions before rows: a row is written before its execution is started, so what is listed has one.
	for _, part := range []func(context.Context) error{p.recognise, p.imports, p.list, p.rows, p.rowless, p.lookAgain, p.round, p.repaired, p.settleIn} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	p.tell(ctx)
	return p.failed
}

// list reads what Temporal lists.
func (p *pass) list(ctx context.Context) error {
	p.listed, p.open, p.missed = map[string]run.Execution{}, map[string]struct{}{}, map[string]int64{}
	for x, err := range p.r.engine.Executions(ctx, p.r.opts.Now().Add(-closedWithin)) {
		if err != nil {
			return err
		}
		if len(p.listed) >= maxListed {
			p.partial = true
			return nil
		}
		if before, twice := p.listed[x.RunID]; twice && (before.Open || before.StartedAt.After(x.StartedAt)) {
			continue // an earlier one, which a reset ended
		}
		p.listed[x.RunID] = x
		if x.Open {
			p.report.Open++
		}
	}
	return nil
}

func (p *pass) facts(row *run.Run) verdict.Facts {
	f := verdict.Facts{Now: p.r.opts.Now(), StartTimeout: p.r.opts.StartTimeout, Row: row, Moved: p.moved, Standing: p.view.Standing()}
	if row != nil {
		f.Listed = p.partial && p.view.Standing() != home.Elsewhere || p.listed[row.ID].Open
	}
	return f
}

// rows goes through all open rows, and asks about those that Temporal does not list.
func (p *pass) rows(ctx context.Context) error {
	var start []run.Run
	var looks []string
	for after := ""; ; {
		page, err := p.r.store.OpenRuns(ctx, after, rowPage)
		if err != nil {
			return err
		}
		for i := range page {
			p.open[page[i].ID] = struct{}{}
			switch verdict.Of(p.facts(&page[i])) { //nolint:exhaustive // the others take an answer
			case verdict.StartAgain:
				start = append(start, page[i])
			case verdict.Look:
				looks = append(looks, page[i].ID)
			case verdict.Walk:
				p.walks = append(p.walks, page[i].ID)
			}
		}
		if len(page) < rowPage {
			break
		}
		after = page[len(page)-1].ID
	}
	if err := each(ctx, p, start, &p.fast, func(r run.Run) string { return r.ID }, p.startAgain); err != nil {
		return err
	}
	if p.view.Standing() == home.Elsewhere {
		some := p.r.memory.bounded(looks, strangersPerPass, !p.dry)
		p.withhold(len(looks) - len(some)) // of the others it is not known, which is the same for now
		looks = some
	}
	return p.examine(ctx, looks, lookChunk, &p.fast, 1)
}

// starting hands over the runs that have been about to start for too long, and nothing else. Where they may be in another
// Temporal, it leaves them to the next whole pass.
func (p *pass) starting(ctx context.Context) error {
	until := p.r.opts.Now().Add(-p.r.opts.StartTimeout)
	for after := ""; ; {
		page, err := p.r.store.StartingRuns(ctx, until, after, rowPage)
		if err != nil {
			return err
		}
		if len(page) > 0 {
			if err := p.locate(ctx); err != nil || p.view.Standing() == home.Elsewhere {
				return err
			}
		}
		if err := each(ctx, p, page, &p.fast, func(r run.Run) string { return r.ID }, p.startAgain); err != nil {
			return err
		}
		if len(page) < rowPage {
			return p.failed
		}
		after = page[len(page)-1].ID
	}
}

// rowless goes through the executions that have no open row.
func (p *pass) rowless(ctx context.Context) error {
	var ids []string
	for id := range p.listed {
		if _, open := p.open[id]; !open {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	var ended []string
	var lost []run.Execution
	for part := range slices.Chunk(ids, rowPage) {
		found, err := p.r.store.FindRuns(ctx, part)
		if err != nil {
			return err
		}
		rows := make(map[string]*run.Run, len(found))
		for i := range found {
			rows[found[i].ID] = &found[i]
		}
		for _, id := range part {
			f := p.facts(rows[id])
			f.Execution = p.listed[id]
			switch verdict.Of(f) { //nolint:exhaustive // the others are for open rows, which were not open a moment ago
			case verdict.Look:
				ended = append(ended, id)
			case verdict.ReadOrigin:
				lost = append(lost, f.Execution)
			}
		}
	}
	if err := each(ctx, p, lost, &p.fast, func(x run.Execution) string { return x.RunID }, p.take); err != nil {
		return err
	}
	return p.examine(ctx, ended, lookChunk, &p.fast, 1)
}

// lookAgain asks once more about the runs that Temporal did not know.
func (p *pass) lookAgain(ctx context.Context) error {
	if len(p.missed) == 0 {
		return nil
	}
	if !pause.For(ctx, time.Until(p.since.Add(secondLookAfter))) {
		return context.Cause(ctx)
	}
	place, err := p.r.engine.Place(ctx)
	if err != nil {
		return err
	}
	if place != p.view.Here {
		p.moved = true
		p.r.memory.moved(place.NamespaceID, "", !p.dry)
		return nil
	}
	ids := make([]string, 0, len(p.missed))
	for id := range p.missed {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return p.examine(ctx, ids, lookChunk, &p.fast, verdict.Looks)
}

// round asks about some of the runs that both sides have as open, a few more in every pass.
func (p *pass) round(ctx context.Context) error {
	at, _ := slices.BinarySearch(p.walks, p.r.memory.turn()+"\x00")
	turn := slices.Concat(p.walks[at:], p.walks[:at])
	turn = turn[:min(len(turn), walksPerPass)]
	for part := range slices.Chunk(turn, walkChunk) {
		if p.enough() {
			return nil
		}
		if err := p.examine(ctx, part, walkChunk, &p.slow, 1); err != nil {
			return err
		}
		if !p.dry {
			p.r.memory.walkedTo(part[len(part)-1])
		}
	}
	return nil
}

// repaired waits for the repairs that were asked for, but not for long: a worker goes on with the others. Those that have changed
// their rows are in the report as applied.
func (p *pass) repaired(ctx context.Context) error {
	left := p.requested
	patience := time.Now().Add(repairedMost)
	for len(left) > 0 {
		late := time.Now().After(patience)
		var open []requested
		for part := range slices.Chunk(left, lookChunk) {
			waiting, err := p.unrepaired(ctx, part, late)
			if err != nil {
				return err
			}
			open = append(open, waiting...)
		}
		if left = open; len(left) > 0 && !pause.For(ctx, repairedEvery) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// unrepaired adds those of the corrections to the report that are made, and when it is late the others, too; otherwise it returns
// those that are still waited for.
func (p *pass) unrepaired(ctx context.Context, list []requested, late bool) (waiting []requested, err error) {
	ids := make([]string, len(list))
	for i, r := range list {
		ids[i] = r.RunID
	}
	found, err := p.r.store.FindRuns(ctx, ids)
	if err != nil {
		return nil, err
	}
	rows := make(map[string]run.Run, len(found))
	for _, row := range found {
		rows[row.ID] = row
	}
	for _, r := range list {
		row, there := rows[r.RunID]
		r.Applied = there && (row.Status.Terminal() || row.Position > r.position && r.Kind != run.CorrectionFinished)
		switch {
		case r.Kind == "" && (r.Applied || late): // it is part of another correction
		case r.Applied && row.Status.Terminal():
			r.Detail += ": " + string(row.Status)
			p.note(r.Correction)
		case r.Applied, late && there:
			p.note(r.Correction)
		case there:
			waiting = append(waiting, r)
		}
	}
	return waiting, nil
}

// examine asks Temporal about runs, of which it may not have known some before, and does what is to be done.
func (p *pass) examine(ctx context.Context, ids []string, chunk int, at *pace.Pace, missed int) error {
	for part := range slices.Chunk(ids, chunk) {
		rows, err := p.r.store.FindRuns(ctx, part)
		if err != nil {
			return err
		}
		if missed > 1 && p.view.Standing() != home.Elsewhere {
			// What was not known before and has moved since is not lost.
			rows = slices.DeleteFunc(rows, func(r run.Run) bool { return p.missed[r.ID] != r.Sequence })
		}
		p.report.Checked += len(rows)
		err = each(ctx, p, rows, at, func(r run.Run) string { return r.ID }, func(ctx context.Context, r run.Run) error {
			return p.compare(ctx, r, missed)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// each calls do for every value, a few at a time and at the given pace. A failure is noted and does not hold up the
// others, unless Temporal is away: that ends it.
func each[V any](ctx context.Context, p *pass, list []V, at *pace.Pace, id func(V) string, do func(context.Context, V) error) error {
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	slots := make(chan struct{}, width)
	var group sync.WaitGroup
	for _, v := range list {
		if at.Wait(ctx) != nil {
			break
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if err := do(ctx, v); err != nil && ctx.Err() == nil {
				if away := p.fail(ctx, id(v), err); away != nil {
					abort(away)
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// fail notes a failure, and returns why to give up when it is not the run's own.
func (p *pass) fail(ctx context.Context, id string, err error) error {
	if f, ok := fault.From(err); ok && f.Class == fault.Unavailable && f.Reason == fault.StoreUnavailable {
		return err
	}
	if _, away := p.r.engine.Place(ctx); away != nil {
		return away
	}
	if remember(&p.r.memory, p.r.memory.failed, id, struct{}{}) {
		logger.FromContext(ctx).WarnContext(ctx, "Run could not be compared with Temporal", "run_id", id, "error", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report.Failed++
	if p.failed == nil {
		p.failed = err
	}
	return nil
}

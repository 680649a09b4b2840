package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// rowPage is how many rows are read at a time. compareChunk and inTurnChunk are how many are read again just before
	// they are compared, so that Temporal's answers are compared with current rows.
	rowPage, compareChunk, inTurnChunk = 1000, 200, 20
	// comparesPerSecond limits comparisons of runs that are known to differ. inTurnPerSecond limits those of runs that
	// both sides list as open, inTurnPerPass their number in one pass.
	comparesPerSecond, inTurnPerSecond, inTurnPerPass = 500, 50, 1000
	// maxConcurrent is how many comparisons are in progress at once.
	maxConcurrent = 8
	// elsewherePerPass is how many runs one pass compares that are probably in another Temporal. It bounds for how long a
	// process that is connected to the wrong one prevents others from acting.
	elsewherePerPass = 2000
	// maxListed bounds the executions that one pass holds in memory. Beyond it, every run counts as listed.
	maxListed = 200_000
	// closedWithin is how long ago an execution may have ended to be checked for a row: more than two passes.
	closedWithin = 2*passEvery + time.Minute
	// importPages is how many pages of open imported runs one pass reads.
	importPages = 10
	// compareAgainAfter is the time between the two comparisons of a run that Temporal does not have.
	compareAgainAfter = 5 * time.Second
	// repairTimeout is how long a pass waits for the repairs that it requested, repairPollEvery how often it polls.
	repairTimeout, repairPollEvery = 5 * time.Second, 50 * time.Millisecond
	// maxCorrections bounds a report's list.
	maxCorrections = 1000
)

// requested is a correction that a worker makes, and the position of its row before the correction.
type requested struct {
	run.Correction

	position int64
}

// pass is one comparison of all rows with Temporal.
type pass struct {
	r      *Reconciler
	dry    bool
	enough func() bool
	// fast paces the comparisons of runs that differ, slow those of the others.
	fast, slow *rate.Limiter

	// view compares this Temporal with the one that holds the runs.
	view run.PlacementView
	// left are the open runs that an adoption has left in another Temporal, with theirs.
	left map[string]run.ClusterID
	// known is what earlier passes have stored.
	known run.Comparisons
	// moved reports that a run that Temporal does not have is not lost: Temporal changed since the previous pass.
	moved  bool
	listed map[string]run.Execution
	// partial reports that the list was truncated.
	partial bool
	// open are the runs that have an open row. Of these, start are to be started again, differing to be compared at once,
	// and inTurn in turn, in order.
	open      map[string]struct{}
	start     []run.Run
	differing []string
	inTurn    []string

	mu     sync.Mutex
	report run.Report
	// lacking is why runs cannot be adopted, by project and document.
	lacking map[[2]string]lack
	// foreign are the executions that cannot be adopted.
	foreign map[foreignKey]*run.ForeignRuns
	// requested are the corrections that were requested from workers.
	requested []requested
	missed    map[string]int64 // sequence numbers of the rows without an execution, by run ID
	since     time.Time        // of the first of them
	restored  bool             // it was found that the database was restored
	failed    error            // of the first run that could not be compared
}

func (p *pass) run(ctx context.Context) (err error) {
	if err := p.readPlacement(ctx); err != nil {
		return err
	}
	if p.known, err = p.r.store.Comparisons(ctx); err != nil {
		return err
	}
	p.moved = p.r.memory.moved(p.view.Here.NamespaceID, p.view.Recorded.NamespaceID, !p.dry)
	// Executions before rows: a row is written before its execution is started, so a listed execution has a row. Those
	// without one come first, because they show that the database was restored.
	for _, part := range []func(context.Context) error{
		p.recordPlacement, p.cancelImported, p.listExecutions, p.readRows, p.compareRowless, p.compareRows, p.searchEnded,
		p.compareMissed, p.compareInTurn,
		p.awaitRepairs, p.recordMove, p.reportForeign, p.markCompared,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	p.reportWithheld(ctx)
	return nil
}

// listExecutions reads Temporal's list of executions.
func (p *pass) listExecutions(ctx context.Context) error {
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
			continue // an earlier execution, which a reset ended
		}
		p.listed[x.RunID] = x
		if x.Open {
			p.report.Open++
		}
	}
	return nil
}

func (p *pass) facts(row *run.Run) Facts {
	f := Facts{Now: p.r.opts.Now(), StartTimeout: p.r.opts.StartTimeout, Row: row, Moved: p.moved,
		Placement: p.view.Placement()}
	if row != nil {
		f.Placement, f.Left = p.placement(row.ID)
		f.Listed = p.partial && f.Placement != run.PlacementElsewhere || p.listed[row.ID].Open
	}
	return f
}

// readRows reads all open rows.
func (p *pass) readRows(ctx context.Context) error {
	for after := ""; ; {
		page, err := p.r.store.OpenRuns(ctx, after, rowPage)
		if err != nil {
			return err
		}
		for i := range page {
			p.open[page[i].ID] = struct{}{}
			switch Decide(p.facts(&page[i])) { //nolint:exhaustive // the others require an answer of Temporal
			case StartAgain:
				p.start = append(p.start, page[i])
			case Compare:
				p.differing = append(p.differing, page[i].ID)
			case CompareInTurn:
				p.inTurn = append(p.inTurn, page[i].ID)
			}
		}
		if len(page) < rowPage {
			return nil
		}
		after = page[len(page)-1].ID
	}
}

// compareRows starts runs again, and compares those that Temporal does not list.
func (p *pass) compareRows(ctx context.Context) error {
	if err := each(ctx, p, p.start, p.fast, func(r run.Run) string { return r.ID }, p.startAgain); err != nil {
		return err
	}
	differing := p.differing
	if p.view.Placement() == run.PlacementElsewhere {
		some := p.r.memory.bounded(differing, elsewherePerPass, !p.dry)
		p.addWithheld(len(differing) - len(some)) // the others count as withheld until a later pass compares them
		differing = some
	}
	return p.compareAll(ctx, differing, compareChunk, p.fast, 1)
}

// restartStale starts the runs again with a start that has timed out. Where they may be in another Temporal, it leaves
// them to the next full pass.
func (p *pass) restartStale(ctx context.Context) error {
	until := p.r.opts.Now().Add(-p.r.opts.StartTimeout)
	for after := ""; ; {
		page, err := p.r.store.StartingRuns(ctx, until, after, rowPage)
		if err != nil {
			return err
		}
		if len(page) > 0 {
			if err := p.readPlacement(ctx); err != nil || p.view.Placement() == run.PlacementElsewhere {
				return err
			}
		}
		if err := each(ctx, p, page, p.fast, func(r run.Run) string { return r.ID }, p.startAgain); err != nil {
			return err
		}
		if len(page) < rowPage {
			return p.failed
		}
		after = page[len(page)-1].ID
	}
}

// compareRowless compares the executions that have no open row.
func (p *pass) compareRowless(ctx context.Context) error {
	rowless := map[string]run.Execution{}
	for id, x := range p.listed {
		if _, open := p.open[id]; !open {
			rowless[id] = x
		}
	}
	ended, lost, err := p.decideRowless(ctx, rowless)
	if err != nil {
		return err
	}
	if err := each(ctx, p, lost, p.fast, func(x run.Execution) string { return x.RunID }, p.adoptOrReport); err != nil {
		return err
	}
	return p.compareAll(ctx, ended, compareChunk, p.fast, 1)
}

// decideRowless returns the runs to compare, of those executions whose rows have ended, and the executions that have no
// row.
func (p *pass) decideRowless(ctx context.Context,
	executions map[string]run.Execution) (ended []string, lost []run.Execution, err error) {
	for part := range slices.Chunk(slices.Sorted(maps.Keys(executions)), rowPage) {
		found, err := p.r.store.FindRuns(ctx, part)
		if err != nil {
			return nil, nil, err
		}
		rows := make(map[string]*run.Run, len(found))
		for i := range found {
			rows[found[i].ID] = &found[i]
		}
		for _, id := range part {
			f := p.facts(rows[id])
			f.Execution = executions[id]
			switch Decide(f) { //nolint:exhaustive // the others are for open rows
			case Compare:
				ended = append(ended, id)
			case ReadOrigin:
				lost = append(lost, f.Execution)
			case Leave:
				if f.Row == nil {
					p.report.Lost.Young++
				}
			}
		}
	}
	return ended, lost, nil
}

// compareMissed compares once more the runs that Temporal did not have.
func (p *pass) compareMissed(ctx context.Context) error {
	if len(p.missed) == 0 {
		return nil
	}
	if !loop.Sleep(ctx, time.Until(p.since.Add(compareAgainAfter))) {
		return context.Cause(ctx)
	}
	cluster, err := p.r.engine.ClusterID(ctx)
	if err != nil {
		return err
	}
	if cluster != p.view.Here {
		p.moved = true
		p.r.memory.moved(cluster.NamespaceID, "", !p.dry)
		return nil
	}
	ids := make([]string, 0, len(p.missed))
	for id := range p.missed {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return p.compareAll(ctx, ids, compareChunk, p.fast, MaxMisses)
}

// compareInTurn compares some of the runs that are open on both sides; each pass continues where the previous one
// ended.
func (p *pass) compareInTurn(ctx context.Context) error {
	at, _ := slices.BinarySearch(p.inTurn, p.r.memory.turn()+"\x00")
	turn := slices.Concat(p.inTurn[at:], p.inTurn[:at])
	turn = turn[:min(len(turn), inTurnPerPass)]
	for part := range slices.Chunk(turn, inTurnChunk) {
		if p.enough() {
			return nil
		}
		if err := p.compareAll(ctx, part, inTurnChunk, p.slow, 1); err != nil {
			return err
		}
		if !p.dry {
			p.r.memory.setTurn(part[len(part)-1])
		}
	}
	return nil
}

// awaitRepairs waits up to repairTimeout for the requested repairs; workers complete the others later. Repairs that
// have changed their rows are reported as applied.
func (p *pass) awaitRepairs(ctx context.Context) error {
	left := p.requested
	deadline := time.Now().Add(repairTimeout)
	for len(left) > 0 {
		late := time.Now().After(deadline)
		var open []requested
		for part := range slices.Chunk(left, compareChunk) {
			waiting, err := p.noteRepairs(ctx, part, late)
			if err != nil {
				return err
			}
			open = append(open, waiting...)
		}
		if left = open; len(left) > 0 && !loop.Sleep(ctx, repairPollEvery) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// noteRepairs adds the applied corrections to the report, and returns the others. Where late is set, it adds these to
// the report as well.
func (p *pass) noteRepairs(ctx context.Context, list []requested, late bool) (waiting []requested, err error) {
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
		case r.Kind == "" && (r.Applied || late): // the repair is part of another correction
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

// compareAll compares runs with Temporal and carries out the verdicts. missed is the number of comparisons in which
// Temporal did not have them, this one included.
func (p *pass) compareAll(ctx context.Context, ids []string, chunk int, at *rate.Limiter, missed int) error {
	for part := range slices.Chunk(ids, chunk) {
		rows, err := p.r.store.FindRuns(ctx, part)
		if err != nil {
			return err
		}
		if missed > 1 && p.view.Placement() != run.PlacementElsewhere {
			// A run that was missed and has changed since is not lost.
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

// each calls do for every value, at most maxConcurrent at a time and at the given pace. It records a failure and
// continues with the others, unless Temporal or the store is unavailable: then it stops.
func each[V any](ctx context.Context, p *pass, list []V, at *rate.Limiter, id func(V) string,
	do func(context.Context, V) error) error {
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	slots := make(chan struct{}, maxConcurrent)
	var group sync.WaitGroup
	for _, v := range list {
		if err := at.Wait(ctx); err != nil {
			abort(err)
			break
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if err := do(ctx, v); err != nil && ctx.Err() == nil {
				if unavailable := p.fail(ctx, id(v), err); unavailable != nil {
					abort(unavailable)
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// fail records the failure of one run. It returns an error where Temporal or the store is unavailable, so that the pass
// must stop.
func (p *pass) fail(ctx context.Context, id string, err error) error {
	if f, ok := apperror.From(err); ok && f.Class == apperror.Unavailable && f.Reason == apperror.StoreUnavailable {
		return err
	}
	if _, unavailable := p.r.engine.ClusterID(ctx); unavailable != nil {
		return unavailable
	}
	if _, logged := p.r.memory.failed.GetOrSet(id, struct{}{}); !logged {
		logger.FromContext(ctx).WarnContext(ctx, "Run could not be compared with Temporal", "run_id", id, "error", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report.Failed++
	if p.failed == nil {
		p.failed, p.report.FailedBecause = err, fmt.Sprintf("run %s: %v", id, err)
	}
	return nil
}

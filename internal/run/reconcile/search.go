package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// A window of time is searched at once. The first one of a pass has searchWindow; the next is as long as its number of
	// executions allows, up to maxSearchWindow.
	searchWindow, maxSearchWindow, minSearchWindow = time.Hour, 24 * time.Hour, time.Second
	// maxInWindow is how many executions a window may have; one with more is divided.
	maxInWindow = 5000
	// searchFor is how long one pass searches: open runs are compared again in time.
	searchFor = 10 * time.Second
)

// searchEnded searches the executions that ended since the last search, and before those of the list, for ones without
// a row. After the restore of an older database these are the runs that were started since its backup; otherwise there
// are none, because all of them were in a list. The search is stored window by window, so that the next pass, of any
// process, continues it.
func (p *pass) searchEnded(ctx context.Context) error {
	if p.view.Placement() == run.PlacementElsewhere {
		return nil
	}
	until := p.r.opts.Now().Add(-closedWithin)
	from := p.known.SearchedUntil
	if from.IsZero() {
		_, err := p.markSearched(ctx, from, until) // the rows of this database begin now
		return err
	}
	from, err := p.skipForgotten(ctx, from, until)
	if err != nil {
		return err
	}
	begun := time.Now()
	for window := searchWindow; from.Before(until) && time.Since(begun) < searchFor; {
		to := from.Add(window)
		if to.After(until) {
			to = until
		}
		count, err := p.searchWindow(ctx, from, to)
		switch {
		case errors.Is(err, errTooMany):
			window = max(window/4, minSearchWindow)
			continue
		case err != nil:
			return err
		case count < maxInWindow/4:
			window = min(2*window, maxSearchWindow)
		}
		if marked, err := p.markSearched(ctx, from, to); err != nil || !marked {
			return err // another process searches, or an operator has the search begin again
		}
		from = to
	}
	if from.Before(until) {
		p.report.SearchedUntil = from
	}
	return nil
}

// markSearched stores how far the search has come from a time that it had reached before; false if that is no longer
// stored.
func (p *pass) markSearched(ctx context.Context, from, until time.Time) (bool, error) {
	if p.dry {
		return true, nil
	}
	return p.r.store.MarkSearched(ctx, from, until)
}

// SearchSince has the next passes search again for the ended executions without a row since a time, for example because
// those of workflows that were not published then were reported instead of adopted.
func (r *Reconciler) SearchSince(ctx context.Context, since time.Time) error {
	for {
		known, err := r.store.Comparisons(ctx)
		if err != nil || known.SearchedUntil.IsZero() || !since.Before(known.SearchedUntil) {
			return err
		}
		if marked, err := r.store.MarkSearched(ctx, known.SearchedUntil, since); err != nil || marked {
			return err
		}
	}
}

// errTooMany reports that a window has more than maxInWindow executions, and can be divided.
var errTooMany = errors.New("too many executions in a window")

// searchWindow adopts or reports the executions without a row that ended in a window, and returns the number of all
// that ended in it.
func (p *pass) searchWindow(ctx context.Context, from, to time.Time) (count int, err error) {
	found := map[string]run.Execution{}
	for x, err := range p.r.engine.EndedExecutions(ctx, from, to) {
		if err != nil {
			return 0, err
		}
		if len(found) >= maxInWindow && to.Sub(from) > minSearchWindow {
			return 0, errTooMany
		}
		found[x.RunID] = x
	}
	_, lost, err := p.decideRowless(ctx, found)
	if err != nil {
		return 0, err
	}
	return len(found), each(ctx, p, lost, p.fast, func(x run.Execution) string { return x.RunID }, p.adoptEnded)
}

// adoptEnded adopts an execution, or reports it. One that cannot be read is reported, too: the search must go on.
func (p *pass) adoptEnded(ctx context.Context, x run.Execution) error {
	err := p.adoptOrReport(ctx, x)
	if f, ok := apperror.From(err); err == nil || ctx.Err() != nil || ok && f.Class == apperror.Unavailable {
		return err
	}
	p.addForeign(x, run.Identity{}, lack{text: fmt.Sprintf("it cannot be adopted: %v", err)})
	if !p.dry {
		p.announce(ctx, run.Correction{
			Kind: run.CorrectionForeign, RunID: x.RunID,
			Detail: fmt.Sprintf("execution %s cannot be adopted: %v", x.ExecutionID, err)})
	}
	return nil
}

// skipForgotten reports the time in which executions ended that Temporal no longer has, and returns where the search
// can begin.
func (p *pass) skipForgotten(ctx context.Context, from, until time.Time) (time.Time, error) {
	if until.Sub(from) < closedWithin {
		return from, nil
	}
	kept, err := p.r.engine.Retention(ctx)
	oldest := p.r.opts.Now().Add(-kept)
	if err != nil || kept == 0 || !from.Before(oldest) {
		return from, err
	}
	p.report.Lost.ForgottenFrom, p.report.Lost.ForgottenUntil = from, oldest
	p.record(ctx, run.Correction{Kind: run.CorrectionForgotten, Detail: fmt.Sprintf(
		"executions that ended between %s and %s were not compared, and Temporal keeps them for %s only: runs among them "+
			"that have no row cannot be found",
		from.UTC().Format(time.RFC3339), oldest.UTC().Format(time.RFC3339), kept)})
	_, err = p.markSearched(ctx, from, oldest)
	return oldest, err
}

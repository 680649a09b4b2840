package system

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/maintenance"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
	"github.com/signalbox-dev/signalbox/internal/sealingkey"
)

// RestoredRows is what the rows tell about the time since a moment.
type RestoredRows struct {
	// Newest is when the newest row was made; zero if there is none.
	Newest time.Time
	// Adopted counts the runs that got their row from Temporal since then, Missing the runs that failed because Temporal
	// does not have them.
	Adopted, Missing int64
}

// LostPayloads are the open runs whose history refers to a large value that no store has.
type LostPayloads struct {
	// Searched counts the open runs whose histories were searched; All is false if there are more, for which there was no
	// time.
	Searched int
	All      bool
	// Runs counts those that lack a value, RunIDs are some of them.
	Runs   int
	RunIDs []string
}

// RestoreSources are what a restored database is compared with, beside the runs in Temporal.
type RestoreSources interface {
	// Comparisons returns what all processes know of the comparisons of the runs with Temporal.
	Comparisons(ctx context.Context) (run.Comparisons, error)
	// RestoredRows returns what the rows tell about the time since a moment.
	RestoredRows(ctx context.Context, since time.Time) (RestoredRows, error)
	// OpenRuns returns up to limit open runs with an ID beyond one, in the order of their IDs.
	OpenRuns(ctx context.Context, after string, limit int) ([]run.Run, error)
	// LacksPayload reports whether the history of a run refers to a large value that no store has.
	LacksPayload(ctx context.Context, runID string) (bool, error)
	// Schedules returns how many schedules Temporal must have, and the changes that it lacks, one line each.
	Schedules(ctx context.Context) (expected int, lacking []string, err error)
	// Dispatchers returns how many dispatchers there are, and the projects of those without an owner.
	Dispatchers(ctx context.Context) (all int, unowned []string, err error)
	// SealingKeys returns the keys that have sealed values, and what needs them.
	SealingKeys(ctx context.Context) ([]sealingkey.State, error)
}

// The parts of a check.
const (
	PartRestore     = "restore"
	PartComparison  = "comparison"
	PartRows        = "rows"
	PartSchedules   = "schedules"
	PartDispatchers = "dispatchers"
	PartKeys        = "keys"
	PartPayloads    = "payloads"
)

// RestoreCheck is how the database differs from Temporal.
type RestoreCheck struct {
	At time.Time
	run.Comparisons

	Maintenance *maintenance.State
	// Comparison is a dry run: it has what the comparisons in the background have not corrected yet.
	Comparison run.Report
	// Rows are since RestoredTo.
	Rows RestoredRows

	Payloads           LostPayloads
	Schedules          int
	LackingSchedules   []string
	Dispatchers        int
	UnownedDispatchers []string
	SealingKeys        []sealingkey.State
	// Errors are why parts are unknown, by part.
	Errors map[string]string
}

// Known reports whether a part is known.
func (c RestoreCheck) Known(part string) bool { return c.Errors[part] == "" }

// Complete reports whether everything is known, all ended executions were searched, and nothing is left to correct.
// What is only reported may remain.
func (c RestoreCheck) Complete() bool {
	left := len(c.Errors) + c.Comparison.Lost.Young + c.Comparison.Failed + c.Comparison.Withheld +
		len(c.LackingSchedules) + len(c.UnownedDispatchers)
	for kind, n := range c.Comparison.Counts {
		if !kind.OnlyReported() {
			left += n
		}
	}
	for _, k := range c.SealingKeys {
		if k.Needed() && !k.Configured {
			left++
		}
	}
	return left == 0 && c.Comparison.SearchedUntil.IsZero()
}

// SealingKeys returns the keys that have sealed values, and what needs them.
func (s *Service) SealingKeys(ctx context.Context) ([]sealingkey.State, error) {
	return s.opts.Restore.SealingKeys(ctx)
}

// CheckRestore compares the database with Temporal after a restore. It changes nothing.
func (s *Service) CheckRestore(ctx context.Context) RestoreCheck {
	check := RestoreCheck{At: s.opts.Now(), Errors: map[string]string{}}
	if state, known := s.opts.Maintenance.Last(); known {
		check.Maintenance = &state
	}
	var asking sync.WaitGroup
	var mu sync.Mutex
	ask := func(part string, read func() error) {
		asking.Go(func() {
			if err := read(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				check.Errors[part] = publicError(ctx, err)
			}
		})
	}
	compared := make(chan struct{})
	ask(PartComparison, func() (err error) {
		defer close(compared)
		check.Comparison, err = s.reconciler.Reconcile(ctx, true)
		return err
	})
	ask(PartSchedules, func() (err error) {
		check.Schedules, check.LackingSchedules, err = s.opts.Restore.Schedules(ctx)
		return err
	})
	ask(PartDispatchers, func() (err error) {
		check.Dispatchers, check.UnownedDispatchers, err = s.opts.Restore.Dispatchers(ctx)
		return err
	})
	ask(PartPayloads, func() (err error) {
		<-compared // both need the budget of requests to Temporal, and the comparison is worth more
		check.Payloads, err = s.searchPayloads(ctx)
		return err
	})
	ask(PartKeys, func() (err error) {
		check.SealingKeys, err = s.opts.Restore.SealingKeys(ctx)
		return err
	})
	known, err := s.opts.Restore.Comparisons(ctx)
	check.Comparisons = known
	ask(PartRestore, func() error { return err })
	ask(PartRows, func() (err error) {
		check.Rows, err = s.opts.Restore.RestoredRows(ctx, known.RestoredTo)
		return err
	})
	asking.Wait()
	return check
}

const (
	// searchFor bounds the search for lost payloads, searchers how many histories are read at once.
	searchFor = 15 * time.Second
	searchers = 8
	// searchPage is the number of open runs that are read at once, sampleRuns that of the IDs that are returned.
	searchPage, sampleRuns = 500, 5
)

// searchPayloads searches the histories of the open runs for references to values that no store has, for as long as it
// has time, and the budget of requests to Temporal lasts.
func (s *Service) searchPayloads(ctx context.Context) (found LostPayloads, err error) {
	bounded, cancel := context.WithTimeout(ctx, searchFor)
	defer cancel()
	var mu sync.Mutex
	for after := ""; ; {
		page, err := s.opts.Restore.OpenRuns(bounded, after, searchPage)
		if err != nil {
			return found, outOfTime(bounded, err)
		}
		var failed error
		limited := false
		var searching sync.WaitGroup
		next := make(chan string)
		for range searchers {
			searching.Go(func() {
				for id := range next {
					lacks, err := s.opts.Restore.LacksPayload(bounded, id)
					mu.Lock()
					switch {
					case errors.Is(err, diagnose.ErrLimited):
						limited = true
					case err != nil:
						failed = errors.Join(failed, err)
					default:
						found.Searched++
					}
					if lacks {
						found.Runs++
						found.RunIDs = append(found.RunIDs, id)
					}
					mu.Unlock()
				}
			})
		}
		for _, r := range page {
			next <- r.ID
		}
		close(next)
		searching.Wait()
		slices.Sort(found.RunIDs)
		found.RunIDs = found.RunIDs[:min(len(found.RunIDs), sampleRuns)]
		if failed != nil {
			return found, outOfTime(bounded, failed)
		}
		if limited || len(page) < searchPage {
			found.All = !limited
			return found, nil
		}
		after = page[len(page)-1].ID
	}
}

// outOfTime returns no error if the time of a search has run out: what was found until then counts.
func outOfTime(bounded context.Context, err error) error {
	if bounded.Err() != nil && errors.Is(context.Cause(bounded), context.DeadlineExceeded) {
		return nil
	}
	return err
}

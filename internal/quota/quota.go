// Package quota limits what a project may use: how many runs at a time, and how many steps per period.
//
//	service := quota.NewService(store, options)
//	err := service.Start(ctx)
//	usage, err := service.Set(ctx, "shop", quota.Quota{ConcurrentRuns: 10, Steps: 100_000, Period: time.Hour})
//	grant, err := service.Grant(ctx, quota.Request{…})   // requested by runs
//	resumed, err := service.Resume(ctx, "shop", nil, "the month's closing")
//	err = service.Stop(ctx)
//
// A run beyond the concurrency limit is accepted and waits as `queued: admission`; package start starts the waiting
// runs in order. A run requests its steps in blocks ([Give]). When it gets none, it waits as `waiting: quota` and
// requests again when the next period begins, or when it is notified that steps are available: the limit was raised,
// runs ended with unused steps, or a user resumed it.
package quota

import (
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// Quota is the limit of a project. Zero means no limit.
type Quota struct {
	// ConcurrentRuns is how many runs may be open at a time. Child runs use their parent's slot.
	ConcurrentRuns int64
	// Steps is the number of steps per Period. Periods begin at multiples of their length since 1970.
	Steps  int64
	Period time.Duration
}

// Usage is the use of a quota.
type Usage struct {
	Quota

	// Admitted runs have a slot, Queued runs wait for one.
	Admitted, Queued int64
	// Used are the steps of this period, including those that open runs were granted and have not entered yet, and those
	// beyond the limit that resumed runs got; Left are the steps of the limit that are not granted. The period began Age
	// ago, and the next one begins at Next, by the clock of the store. All are zero without a limit of steps.
	Used, Left int64
	Age        time.Duration
	Next       time.Time
	// Waiting runs wait for steps.
	Waiting int64
}

// The bounds of a quota.
const (
	MostRuns      = 1_000_000
	MostSteps     = 1_000_000_000_000
	LongestPeriod = 366 * 24 * time.Hour
)

// check returns everything that is wrong with a quota.
func (q Quota) check() error {
	f := apperror.New(apperror.Invalid, apperror.InvalidArgument, "invalid quota")
	if q.ConcurrentRuns < 0 || q.ConcurrentRuns > MostRuns {
		f = f.WithField("quota/concurrentRuns", "%d is not between 0, which is no limit, and %d", q.ConcurrentRuns, MostRuns)
	}
	if q.Steps < 0 || q.Steps > MostSteps {
		f = f.WithField("quota/steps", "%d is not between 0, which is no limit, and %d", q.Steps, MostSteps)
	}
	switch {
	case q.Period < 0 || q.Period > LongestPeriod:
		f = f.WithField("quota/periodSeconds", "%d is not between 1 and %d", int64(q.Period/time.Second),
			int64(LongestPeriod/time.Second))
	case q.Steps > 0 && q.Period == 0:
		f = f.WithField("quota/periodSeconds", "is required with a limit of steps")
	case q.Steps == 0 && q.Period > 0:
		f = f.WithField("quota/periodSeconds", "has no effect without a limit of steps")
	}
	if len(f.Fields) == 0 {
		return nil
	}
	for i, field := range f.Fields {
		separator := "; "
		if i == 0 {
			separator = ": "
		}
		f.Message += separator + field.Path + " " + field.Message
	}
	return f
}

// Package quota is what a project may use: how many runs at a time, and how many steps per period.
//
//	service := quota.NewService(store, options)
//	err := service.Start(ctx)
//	usage, err := service.Set(ctx, "shop", quota.Quota{ConcurrentRuns: 10, Steps: 100_000, Period: time.Hour})
//	grant, err := service.Grant(ctx, quota.Request{…})   // asked by runs, as they go
//	resumed, err := service.Resume(ctx, "shop", nil, "the month's closing")
//	err = service.Stop(ctx)
//
// A run that finds no place is accepted and waits as `queued: admission`; package admission starts those that wait, in order. A run asks
// for its steps in blocks ([Give]); when it gets none, it waits as `waiting: quota` and asks again by itself when the next period begins,
// or when it is told that there are some: because the limit was raised, runs have ended that did not use theirs, or somebody resumed it.
package quota

import (
	"time"

	"github.com/signalbox-dev/signalbox/internal/fault"
)

// Quota is what a project may use. Zero is no limit.
type Quota struct {
	// ConcurrentRuns is how many runs may be open at a time. Child runs use their parent's place.
	ConcurrentRuns int64
	// Steps may be entered per Period. Periods begin at multiples of their length since 1970.
	Steps  int64
	Period time.Duration
}

// Usage is how much of a quota is used.
type Usage struct {
	Quota

	// Admitted runs have a place, Queued wait for one.
	Admitted, Queued int64
	// Used are the steps of this period, those that open runs were granted and have not entered yet included, and those beyond the
	// limit that resumed runs were; Left are those of the limit that are not granted. The period has begun Age ago, and the next one
	// begins at Next, by the clock of the store. All are zero without a quota of steps.
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

// check tells what is wrong with a quota, all of it at once.
func (q Quota) check() error {
	f := fault.New(fault.Invalid, fault.InvalidArgument, "this is no quota")
	if q.ConcurrentRuns < 0 || q.ConcurrentRuns > MostRuns {
		f = f.WithField("quota/concurrentRuns", "%d is not between 0, which is no limit, and %d", q.ConcurrentRuns, MostRuns)
	}
	if q.Steps < 0 || q.Steps > MostSteps {
		f = f.WithField("quota/steps", "%d is not between 0, which is no limit, and %d", q.Steps, MostSteps)
	}
	switch {
	case q.Period < 0 || q.Period > LongestPeriod:
		f = f.WithField("quota/periodSeconds", "%d is not between 1 and %d", int64(q.Period/time.Second), int64(LongestPeriod/time.Second))
	case q.Steps > 0 && q.Period == 0:
		f = f.WithField("quota/periodSeconds", "is required beside a limit of steps: how long is a period?")
	case q.Steps == 0 && q.Period > 0:
		f = f.WithField("quota/periodSeconds", "says nothing without a limit of steps")
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

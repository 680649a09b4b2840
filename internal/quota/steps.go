package quota

import "time"

// Request asks for a block of steps.
type Request struct {
	Project, RunID string
	// Granted are all steps that the run has heard of, Entered all that it has entered.
	Granted, Entered int64
}

// Grant answers a [Request].
type Grant struct {
	// Steps may be entered before Until; 0: none before the next period, which begins then.
	Steps int64
	Until time.Time
	// Used and Limit are the project's, in this period.
	Used, Limit int64
}

// The block that a run is granted at a time: a share of the limit, so that as many runs as the share is a part of it come to steps in
// turn, up to a size from which asking costs nothing to speak of.
const (
	share     = 20
	mostSteps = 100
)

// After a limit was lifted, the runs that were started under it go on asking, now and then: it may come back.
const (
	freeSteps = 1000
	freeFor   = time.Minute
)

// Period is what was granted in one period: of the limit, and beyond it to runs that somebody resumed.
type Period struct{ Granted, Extra int64 }

// Account is what one run was granted.
type Account struct {
	// Taken are the steps of the limit that it took in this period, Entered those that it had entered before them.
	Taken, Entered int64
	// Total are all that it was ever granted.
	Total int64
	// Resumed tells that somebody lets it have more than the limit, once.
	Resumed bool
}

// Give decides how many steps a run gets, and books them: a block of what is left of the limit, or for one that was resumed as many as the
// whole limit beyond it. An answer that the run has not heard of is repeated.
func Give(limit int64, p *Period, a *Account, r Request) int64 {
	if unheard := a.Total - r.Granted; unheard > 0 {
		return unheard
	}
	a.Total = r.Granted
	steps := block(limit, limit-p.Granted)
	switch {
	case a.Resumed:
		steps, a.Resumed = limit, false
		p.Extra += steps
	case steps > 0:
		if a.Taken == 0 {
			a.Entered = r.Entered
		}
		p.Granted += steps
		a.Taken += steps
	}
	a.Total += steps
	return steps
}

func block(limit, left int64) int64 {
	return max(0, min(left, max(1, min(limit/share, mostSteps))))
}

// Unused is how much of what a run took of the limit it has not entered, when it has ended and entered so many steps in all.
func Unused(a Account, entered int64) int64 {
	return a.Taken - min(a.Taken, max(0, entered-a.Entered))
}

// Free is the answer where there is no limit any more.
func Free(now time.Time) Grant { return Grant{Steps: freeSteps, Until: now.Add(freeFor)} }

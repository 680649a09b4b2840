package quota

import "time"

// Request asks for a block of steps.
type Request struct {
	Project, RunID string
	// Granted is the total of steps that the run has received, Entered the total that it has entered.
	Granted, Entered int64
}

// Grant answers a [Request].
type Grant struct {
	// Steps may be entered before Until; 0 means none before the next period, which begins at Until.
	Steps int64
	Until time.Time
	// Used and Limit are the project's, in this period.
	Used, Limit int64
}

// A run is granted a block of steps at a time: a share of the limit, so that several runs get steps in turn, up to a
// size at which the cost of the requests is negligible.
const (
	share     = 20
	mostSteps = 100
)

// After a limit was removed, runs that started under it still request steps from time to time, because a limit may be
// set again.
const (
	freeSteps = 1000
	freeFor   = time.Minute
)

// Period is the number of steps granted in one period: of the limit, and beyond it to resumed runs.
type Period struct{ Granted, Extra int64 }

// Account is the number of steps granted to one run.
type Account struct {
	// Taken are the steps of the limit granted to it in this period, Entered those that it had entered before them.
	Taken, Entered int64
	// Total are all steps ever granted to it.
	Total int64
	// Resumed: a user lets it exceed the limit, once.
	Resumed bool
}

// Give decides how many steps a run gets, and books them: a block of what is left of the limit, or for a resumed run as
// many steps as the whole limit beyond it. A grant that the run has not received is repeated.
func Give(limit int64, p *Period, a *Account, r Request) int64 {
	if unreceived := a.Total - r.Granted; unreceived > 0 {
		return unreceived
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

// Unused returns the steps of the limit that an ended run was granted and has not entered; entered is its total.
func Unused(a Account, entered int64) int64 {
	return a.Taken - min(a.Taken, max(0, entered-a.Entered))
}

// Free returns the grant for a project without a limit.
func Free(now time.Time) Grant { return Grant{Steps: freeSteps, Until: now.Add(freeFor)} }

package reconcile

import (
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// quietPeriod is how long a row must be unchanged before its run is compared.
	quietPeriod = 15 * time.Second
	// minAge is the age from which an execution must have a row. Rows are written before their executions are started.
	minAge = 20 * time.Second
	// MaxMisses is the number of consecutive comparisons in which Temporal must not have a run until it counts as lost: a
	// frontend may not have a new namespace in its cache yet.
	MaxMisses = 2
)

// Answer reports whether Temporal was queried for a run, and whether it has the run.
type Answer int

// The answers.
const (
	Unasked Answer = iota
	Unknown
	Known
)

// Origin reports whether an execution without a row belongs to this Signalbox.
type Origin int

// The origins.
const (
	Unread Origin = iota
	Ours
	Foreign
)

// Facts are the state of one run on both sides.
type Facts struct {
	Now time.Time
	// StartTimeout is how long the start of a run may take.
	StartTimeout time.Duration
	// Row is nil where the run has none.
	Row *run.Run
	// Listed reports whether Temporal lists the run as open. The list may be out of date.
	Listed bool
	Answer Answer
	// Execution is the run's execution where Answer is Known; without a row, that of the list.
	Execution run.Execution
	// Missed is the number of consecutive Unknown answers, this one included.
	Missed int
	// Moved reports that Temporal changed since the last pass, so that a run that it does not have is not lost.
	Moved bool
	// Placement compares this Temporal with the one that holds the run.
	Placement run.Placement
	// Left reports that an adoption has left the run in another Temporal.
	Left   bool
	Origin Origin
}

// Verdict is what to do about a run.
type Verdict int

// The verdicts.
const (
	Leave          Verdict = iota
	Compare                // query Temporal now, and decide again
	CompareInTurn          // query Temporal in turn, and decide again
	CompareAgain           // query Temporal once more, a few seconds later
	Withhold               // change nothing and report it: the run may be in another Temporal
	StartAgain             // start it in Temporal again
	Finish                 // write its end into the row
	CatchUp                // bring the row up to the history
	FailMissing            // fail it: Temporal has lost its execution
	FollowReset            // rewrite its row from the execution that a reset made
	ReportReopened         // report that it has ended here and is open in Temporal
	ReadOrigin             // read what started the execution
	Adopt                  // insert a row
	ReportForeign          // report that the execution does not belong to this Signalbox
	CancelImported         // cancel it: its engine no longer exists
)

// Decide returns what to do about a run.
func Decide(f Facts) Verdict {
	switch {
	case f.Row == nil:
		return decideRowless(f)
	case f.Row.Trigger == run.TriggerImport:
		return decideImported(f)
	case f.Row.Status.Terminal():
		return decideEnded(f)
	case f.Left && !f.Listed:
		return Leave // it is not missing, and was reported when it was left
	case f.Row.Status == run.Queued && f.Row.QueuedReason == run.QueuedStarting:
		return decideStarting(f)
	case f.Row.Status == run.Queued && f.Row.QueuedReason != run.QueuedWorker:
		return Leave // Temporal does not have it yet, and the queue handles it
	default:
		return decideHandedOver(f)
	}
}

// decideRowless decides for an execution that has no row.
func decideRowless(f Facts) Verdict {
	switch {
	case f.Now.Sub(f.Execution.StartedAt) < minAge:
		return Leave
	case f.Origin == Unread:
		return ReadOrigin
	case f.Origin == Ours:
		return Adopt
	default:
		return ReportForeign
	}
}

// decideEnded decides for a run that has ended in its row. Its end is final.
func decideEnded(f Facts) Verdict {
	switch {
	case !f.Listed, f.Now.Sub(f.Row.EndedAt) < quietPeriod: // lists lag behind
		return Leave
	case f.Answer == Unasked:
		return Compare
	case f.Answer == Known && f.Execution.Open:
		return ReportReopened
	default:
		return Leave
	}
}

// decideImported decides for a run that another engine executed. A run of another Temporal may continue there, and is
// not compared with the Temporal of this process.
func decideImported(f Facts) Verdict {
	if f.Row.Status.Terminal() || f.Row.LegacyEngine == run.LegacyTemporal {
		return Leave
	}
	return CancelImported
}

// decideStarting decides for a run without a known start outcome.
func decideStarting(f Facts) Verdict {
	late := f.Now.Sub(f.Row.StatusAt) >= f.StartTimeout
	switch {
	case f.Placement != run.PlacementElsewhere && late:
		// Starting a run twice in one namespace starts it once, so the outcome of the first start need not be determined.
		return StartAgain
	case f.Placement != run.PlacementElsewhere:
		return Leave
	case f.Answer == Unasked:
		return Compare
	case f.Answer == Known && late:
		return StartAgain
	case f.Answer == Known:
		return Leave
	case !late && f.Missed < MaxMisses:
		return CompareAgain // its start may be in progress
	default:
		return Withhold
	}
}

// decideHandedOver decides for an open run that was started in Temporal.
func decideHandedOver(f Facts) Verdict {
	switch f.Answer {
	case Unasked:
		switch {
		case f.Placement == run.PlacementElsewhere && !f.Listed:
			return Compare // every run that is not here must be reported
		case run.Recent(f.Now, f.Row.StatusAt, quietPeriod):
			return Leave
		case f.Listed:
			return CompareInTurn
		default:
			return Compare
		}
	case Unknown:
		switch {
		case f.Placement == run.PlacementElsewhere:
			return Withhold
		case f.Moved:
			return Leave
		case f.Missed < MaxMisses:
			return CompareAgain
		case f.Placement == run.PlacementDivided:
			return Withhold
		default:
			return FailMissing
		}
	case Known:
		return decideKnown(f)
	}
	return Leave
}

// decideKnown decides for an open run that both sides have.
func decideKnown(f Facts) Verdict {
	switch x := f.Execution; {
	case x.Relation == run.RelationReset:
		return FollowReset
	case run.BehindBecause(*f.Row, x, f.Now) == "":
		return Leave
	case !x.Open:
		return Finish
	default:
		return CatchUp
	}
}

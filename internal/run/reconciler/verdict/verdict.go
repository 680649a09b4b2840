package verdict

import (
	"time"

	"github.com/signalbox-dev/signalbox/internal/cutover"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/home"
)

const (
	// quietFor is how long a row must have been left alone before Temporal is asked about its run.
	quietFor = 15 * time.Second
	// youngest is the age from which an execution must have a row. Rows are written before executions are started.
	youngest = 20 * time.Second
	// Looks is how often in a row a run must be unknown to Temporal before it counts as lost: a frontend may not know
	// of a namespace yet that has just been made.
	Looks = 2
)

// Answer is what Temporal said when it was asked about a run.
type Answer int

// The answers.
const (
	Unasked Answer = iota
	Unknown
	Known
)

// Origin is whether an execution without a row is one of ours.
type Origin int

// The origins.
const (
	Unread Origin = iota
	Ours
	Strange
)

// Facts are what is known of one run, on both sides.
type Facts struct {
	Now time.Time
	// StartTimeout is how long the start of a run may take.
	StartTimeout time.Duration
	// Row is nil when there is none.
	Row *run.Run
	// Listed tells whether Temporal lists the run as open; a hint.
	Listed bool
	Answer Answer
	// Execution is what Temporal has, when the answer is known; without a row, what the list says.
	Execution run.Execution
	// Missed is how often in a row the answer was unknown, this one included.
	Missed int
	// Moved tells that Temporal is not the same place as before, so that nothing can be concluded from what it does not know.
	Moved bool
	// Standing is what Temporal's place is to the runs.
	Standing home.Standing
	Origin   Origin
}

// Verdict is what to do about a run.
type Verdict int

// The verdicts.
const (
	Leave      Verdict = iota
	Look               // ask Temporal about it now
	Walk               // ask Temporal about it when its turn comes
	LookAgain          // ask Temporal once more, a few seconds later
	Withhold           // leave it alone, and say so: it may be in another Temporal
	StartAgain         // hand it over again
	Finish             // write how it ended
	CatchUp            // write how far it has come
	End                // fail it: Temporal has lost it
	Follow             // rewrite its row from the execution that a reset made
	Reopened           // report that it is open again
	ReadOrigin         // find out what started it
	Adopt              // make a row
	Foreign            // report that it is none of ours
	Settle             // cancel it: its engine is gone
)

// Of is the reconciler's judgement.
func Of(f Facts) Verdict {
	switch {
	case f.Row == nil:
		return decideRowless(f)
	case f.Row.Trigger == run.TriggerImport:
		return decideImported(f)
	case f.Row.Status.Terminal():
		return decideEnded(f)
	case f.Row.Status == run.Queued && f.Row.QueuedReason == run.QueuedStarting:
		return decideStarting(f)
	case f.Row.Status == run.Queued && f.Row.QueuedReason != run.QueuedWorker:
		return Leave // Temporal has not got it yet, and somebody else looks after it
	default:
		return decideHandedOver(f)
	}
}

// decideRowless judges an execution that has no row.
func decideRowless(f Facts) Verdict {
	switch {
	case f.Now.Sub(f.Execution.StartedAt) < youngest:
		return Leave
	case f.Origin == Unread:
		return ReadOrigin
	case f.Origin == Ours:
		return Adopt
	default:
		return Foreign
	}
}

// decideEnded judges a run whose row has ended. Its end is final.
func decideEnded(f Facts) Verdict {
	switch {
	case !f.Listed, f.Now.Sub(f.Row.EndedAt) < quietFor: // lists lag behind
		return Leave
	case f.Answer == Unasked:
		return Look
	case f.Answer == Known && f.Execution.Open:
		return Reopened
	default:
		return Leave
	}
}

// decideImported judges a run that another engine ran. Temporal's may go on somewhere, and are not compared with the one that is here.
func decideImported(f Facts) Verdict {
	if f.Row.Status.Terminal() || f.Row.LegacyEngine == cutover.Temporal {
		return Leave
	}
	return Settle
}

// decideStarting judges a run whose start has no known outcome.
func decideStarting(f Facts) Verdict {
	late := f.Now.Sub(f.Row.StatusAt) >= f.StartTimeout
	switch {
	case f.Standing != home.Elsewhere && late:
		// Starting a run twice in one place starts it once, so it takes no knowledge of which it was.
		return StartAgain
	case f.Standing != home.Elsewhere:
		return Leave
	case f.Answer == Unasked:
		return Look
	case f.Answer == Known && late:
		return StartAgain
	case f.Answer == Known:
		return Leave
	case !late && f.Missed < Looks:
		return LookAgain // it may be on its way
	default:
		return Withhold
	}
}

// decideHandedOver judges an open run that Temporal was given.
func decideHandedOver(f Facts) Verdict {
	switch f.Answer {
	case Unasked:
		switch {
		case f.Standing == home.Elsewhere && !f.Listed:
			return Look // whatever is not here counts
		case run.Recent(f.Now, f.Row.StatusAt, quietFor):
			return Leave
		case f.Listed:
			return Walk
		default:
			return Look
		}
	case Unknown:
		switch {
		case f.Standing == home.Elsewhere:
			return Withhold
		case f.Moved:
			return Leave
		case f.Missed < Looks:
			return LookAgain
		case f.Standing == home.Divided:
			return Withhold
		default:
			return End
		}
	case Known:
		return decideKnown(f)
	}
	return Leave
}

// decideKnown judges an open run that both sides know.
func decideKnown(f Facts) Verdict {
	switch x := f.Execution; {
	case x.Relation == run.RelationReset:
		return Follow
	case run.BehindBecause(*f.Row, x, f.Now) == "":
		return Leave
	case !x.Open:
		return Finish
	default:
		return CatchUp
	}
}

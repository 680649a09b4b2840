package reconciler

import (
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// quietFor is how long a row must have been left alone before Temporal is asked about its run.
	quietFor = 15 * time.Second
	// lag is how long the projection may take with what Temporal has accepted, before a row counts as behind.
	lag = 5 * time.Second
	// youngest is the age from which an execution must have a row. Rows are written before executions are started.
	youngest = 20 * time.Second
	// looks is how often in a row a run must be unknown to Temporal before it counts as lost: a frontend may not know
	// of a namespace yet that has just been made.
	looks = 2
)

// answer is what Temporal said when it was asked about a run.
type answer int

const (
	unasked answer = iota
	unknown
	known
)

// origin is whether an execution without a row is one of ours.
type origin int

const (
	unread origin = iota
	ours
	strange
)

// facts are what is known of one run, on both sides.
type facts struct {
	now time.Time
	// startTimeout is how long the start of a run may take.
	startTimeout time.Duration
	// row is nil when there is none.
	row *run.Run
	// listed tells whether Temporal lists the run as open; a hint.
	listed bool
	answer answer
	// execution is what Temporal has, when the answer is known; without a row, what the list says.
	execution run.Execution
	// missed is how often in a row the answer was unknown, this one included.
	missed int
	// moved tells that Temporal is not the same place as before, so that nothing can be concluded from what it does not know.
	moved bool
	// standing is what Temporal's place is to the runs.
	standing standing
	// rebuilt tells that the history up to the last accepted workflow task was interpreted before and changed nothing.
	rebuilt bool
	origin  origin
}

// verdict is what to do about a run.
type verdict int

const (
	leave      verdict = iota
	look               // ask Temporal about it now
	walk               // ask Temporal about it when its turn comes
	lookAgain          // ask Temporal once more, a few seconds later
	withhold           // leave it alone, and say so: it may be in another Temporal
	startAgain         // hand it over again
	finish             // write how it ended
	catchUp            // write how far it has come
	end                // fail it: Temporal has lost it
	follow             // rewrite its row from the execution that a reset made
	reopened           // report that it is open again
	readOrigin         // find out what started it
	adopt              // make a row
	foreign            // report that it is none of ours
)

// decide is the reconciler's judgement.
func decide(f facts) verdict {
	switch {
	case f.row == nil:
		return decideRowless(f)
	case f.row.Status.Terminal():
		return decideEnded(f)
	case f.row.Status == run.Queued && f.row.QueuedReason == run.QueuedStarting:
		return decideStarting(f)
	case f.row.Status == run.Queued && f.row.QueuedReason != run.QueuedWorker:
		return leave // Temporal has not got it yet, and somebody else looks after it
	default:
		return decideHandedOver(f)
	}
}

// decideRowless judges an execution that has no row.
func decideRowless(f facts) verdict {
	switch {
	case f.now.Sub(f.execution.StartedAt) < youngest:
		return leave
	case f.origin == unread:
		return readOrigin
	case f.origin == ours:
		return adopt
	default:
		return foreign
	}
}

// decideEnded judges a run whose row has ended. Its end is final.
func decideEnded(f facts) verdict {
	switch {
	case !f.listed, f.now.Sub(f.row.EndedAt) < quietFor: // lists lag behind
		return leave
	case f.answer == unasked:
		return look
	case f.answer == known && f.execution.Open:
		return reopened
	default:
		return leave
	}
}

// decideStarting judges a run whose start has no known outcome.
func decideStarting(f facts) verdict {
	late := f.now.Sub(f.row.StatusAt) >= f.startTimeout
	switch {
	case f.standing != elsewhere && late:
		// Starting a run twice in one place starts it once, so it takes no knowledge of which it was.
		return startAgain
	case f.standing != elsewhere:
		return leave
	case f.answer == unasked:
		return look
	case f.answer == known && late:
		return startAgain
	case f.answer == known:
		return leave
	case !late && f.missed < looks:
		return lookAgain // it may be on its way
	default:
		return withhold
	}
}

// decideHandedOver judges an open run that Temporal was given.
func decideHandedOver(f facts) verdict {
	switch f.answer {
	case unasked:
		switch {
		case f.standing == elsewhere && !f.listed:
			return look // whatever is not here counts
		case f.now.Sub(f.row.StatusAt) < quietFor:
			return leave
		case f.listed:
			return walk
		default:
			return look
		}
	case unknown:
		switch {
		case f.standing == elsewhere:
			return withhold
		case f.moved:
			return leave
		case f.missed < looks:
			return lookAgain
		case f.standing == divided:
			return withhold
		default:
			return end
		}
	case known:
		return decideKnown(f)
	}
	return leave
}

// decideKnown judges an open run that both sides know.
func decideKnown(f facts) verdict {
	x := f.execution
	switch {
	case x.Relation == run.RelationReset:
		return follow
	case !x.Open && f.now.Sub(x.ClosedAt) < lag:
		return leave
	case !x.Open:
		return finish
	case f.rebuilt, f.now.Sub(x.StartedAt) < lag, f.now.Sub(x.AcceptedAt) < lag:
		return leave
	case x.Relation == run.RelationSuccessor, x.Accepted > run.HistoryLength(f.row.Position):
		return catchUp
	default:
		return leave
	}
}

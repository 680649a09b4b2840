package projection

import (
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// maxSteps and maxBytes bound the backlog. Updates beyond them are dropped.
	maxSteps = 200_000
	maxBytes = 112 << 20
	// fullSteps and fullBytes are the sizes from which workflow tasks are held back while the store is available. At
	// half of them they continue.
	fullSteps = 20_000
	fullBytes = 16 << 20
	// maxSuspects bounds the number of runs that are remembered until their repair is requested, and requestsAtOnce the
	// number of repairs that one transaction requests. A run beyond the bound is detected only while its row is behind.
	maxSuspects    = 100_000
	requestsAtOnce = 500
	// requestAfter delays a repair until updates of its run are accepted again: before that they are dropped.
	requestAfter = time.Second
)

// backlog counts what waits for the store, and the runs with dropped updates. Its owner's lock guards it.
type backlog struct {
	// pending is waiting, writing is being written. Both count steps and bytes.
	pending, writing amount
	// shares are the parts of task queues in both. A queue without a part has no entry.
	shares      map[string]share
	unavailable bool // the store
	suspects    map[string]suspect
	room        chan struct{} // closed when there is room again; nil while no caller waits
}

// suspect is a run with a row that is, or may be, behind the run's state in this process.
type suspect struct {
	// lost is set if an update of the run was dropped. While dropping is set, later updates are dropped too, until a
	// repair is requested. If lost is not set, the row must only be compared.
	lost, dropping bool
	// since is set if an update was dropped after requests last listed the run.
	since bool
}

type amount struct{ steps, bytes int }

// share is the part of one task queue in the backlog.
type share struct{ pending, writing amount }

// load returns the fraction of a full backlog.
func (a amount) load() float64 {
	return max(float64(a.steps)/fullSteps, float64(a.bytes)/fullBytes)
}

func (a amount) plus(b amount) amount { return amount{a.steps + b.steps, a.bytes + b.bytes} }

func (a amount) minus(b amount) amount { return amount{a.steps - b.steps, a.bytes - b.bytes} }

func (a amount) beyond(steps, bytes int) bool { return a.steps > steps || a.bytes > bytes }

func newBacklog() backlog { return backlog{suspects: map[string]suspect{}, shares: map[string]share{}} }

func amountOf(u run.Update) amount { return amount{len(u.Steps), u.Size()} }

func (b *backlog) all() amount { return b.pending.plus(b.writing) }

// take adds an update, or drops it. An update that alone exceeds the bounds is accepted if the backlog is empty.
func (b *backlog) take(queue string, u run.Update) (amount, bool) {
	own := amountOf(u)
	if b.suspects[u.RunID].dropping || b.all() != (amount{}) && b.all().plus(own).beyond(maxSteps, maxBytes) {
		b.drop(u.RunID)
		return own, false
	}
	b.pending = b.pending.plus(own)
	s := b.shares[queue]
	s.pending = s.pending.plus(own)
	b.shares[queue] = s
	return own, true
}

// drop records that an update of a run was dropped.
func (b *backlog) drop(runID string) {
	b.suspect(runID, suspect{lost: true, dropping: true, since: true})
}

// unsure records that updates of a run which Temporal accepted may be missing here.
func (b *backlog) unsure(runID string) {
	if _, found := b.suspects[runID]; !found {
		b.suspect(runID, suspect{})
	}
}

func (b *backlog) suspect(runID string, s suspect) {
	if _, found := b.suspects[runID]; found || len(b.suspects) < maxSuspects {
		b.suspects[runID] = s
	}
}

// taken moves an amount from pending to writing.
func (b *backlog) taken(queue string, own amount) {
	b.pending, b.writing = b.pending.minus(own), b.writing.plus(own)
	s := b.shares[queue]
	s.pending, s.writing = s.pending.minus(own), s.writing.plus(own)
	b.shares[queue] = s
}

// written removes the amount in writing.
func (b *backlog) written() {
	b.writing = amount{}
	for queue, s := range b.shares {
		if s.writing = (amount{}); s.pending == (amount{}) {
			delete(b.shares, queue)
			continue
		}
		b.shares[queue] = s
	}
	b.release()
}

// storeAvailable records whether the store is available.
func (b *backlog) storeAvailable(available bool) {
	b.unavailable = !available
	b.release()
}

// wait returns a channel that is closed when there is room, nil if there is room now. In a full backlog there is room
// for a task queue with a share below the average: the queues that fill the backlog wait. A single queue always has the
// average, so the backlog is bounded.
func (b *backlog) wait(queue string) <-chan struct{} {
	all := b.all()
	if b.unavailable || !all.beyond(fullSteps, fullBytes) {
		return nil
	}
	s := b.shares[queue]
	if s.pending.plus(s.writing).load()*float64(len(b.shares)) < all.load() {
		return nil
	}
	if b.room == nil {
		b.room = make(chan struct{})
	}
	return b.room
}

func (b *backlog) release() {
	if b.room != nil && (b.unavailable || !b.all().beyond(fullSteps/2, fullBytes/2)) {
		close(b.room)
		b.room = nil
	}
}

// requests returns requests for the repair of some of the runs.
func (b *backlog) requests() []run.RepairRequest {
	var list []run.RepairRequest
	for id, s := range b.suspects {
		s.since = false
		b.suspects[id] = s
		request := run.RepairRequest{
			RunID: id, Reason: "the answer to the completion of a workflow task was lost", After: requestAfter}
		if s.lost {
			request.Reason = "updates of the row were dropped while the database was away or too slow, or refused them"
			request.Behind, request.Force = true, true
		}
		if list = append(list, request); len(list) == requestsAtOnce {
			break
		}
	}
	return list
}

// requested removes the runs of requested repairs. If an update was dropped since, the repair may start before it: then
// the updates of the run are accepted again, and its repair is requested again.
func (b *backlog) requested(list []run.RepairRequest) {
	for _, r := range list {
		if s := b.suspects[r.RunID]; s.since {
			b.suspects[r.RunID] = suspect{lost: true}
		} else {
			delete(b.suspects, r.RunID)
		}
	}
}

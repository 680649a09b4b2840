package projection

import (
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
)

const (
	// maxSteps and maxBytes bound what waits for the store. Beyond them updates are dropped.
	maxSteps = 200_000
	maxBytes = 112 << 20
	// fullSteps and fullBytes are from where workflow tasks are held back while the store works; half of it lets them go on.
	fullSteps = 20_000
	fullBytes = 16 << 20
	// maxSuspects bounds the runs that are remembered until their repair is requested, and requestsAtOnce how many repairs are requested in
	// one transaction. Beyond the bound a run is found only while its row is behind.
	maxSuspects    = 100_000
	requestsAtOnce = 500
	// requestAfter lets a repair begin when updates of its run are taken again: until then they are dropped.
	requestAfter = time.Second
)

// backlog is how much waits for the store, and what found no room. Its owner's lock guards it.
type backlog struct {
	// pending waits, writing is under way; both are steps and bytes.
	pending, writing amount
	// shares are those of task queues in both; a queue that has nothing in them is not there.
	shares   map[string]share
	away     bool
	suspects map[string]suspect
	room     chan struct{} // closed when there is room again; nil while no caller waits
}

// suspect is a run whose row is, or may be, behind what this process knows of the run.
type suspect struct {
	// lost is set where an update of the run was dropped, dropping that later ones are, too, until a repair is requested. Otherwise the row
	// is only to be compared.
	lost, dropping bool
	// since is set where one was dropped after the run was last listed by requests.
	since bool
}

type amount struct{ steps, bytes int }

// share is what one task queue has in the backlog.
type share struct{ pending, writing amount }

// load is how much an amount is of a full backlog.
func (a amount) load() float64 {
	return max(float64(a.steps)/fullSteps, float64(a.bytes)/fullBytes)
}

func (a amount) plus(b amount) amount { return amount{a.steps + b.steps, a.bytes + b.bytes} }

func (a amount) minus(b amount) amount { return amount{a.steps - b.steps, a.bytes - b.bytes} }

func (a amount) beyond(steps, bytes int) bool { return a.steps > steps || a.bytes > bytes }

func newBacklog() backlog { return backlog{suspects: map[string]suspect{}, shares: map[string]share{}} }

func amountOf(u run.Update) amount { return amount{len(u.Steps), u.Size()} }

func (b *backlog) all() amount { return b.pending.plus(b.writing) }

// take counts an update in, or drops it. An update that alone is over the bounds is taken where nothing waits.
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

// drop notes that an update of a run is dropped.
func (b *backlog) drop(runID string) {
	b.suspect(runID, suspect{lost: true, dropping: true, since: true})
}

// unsure notes that what Temporal accepted of a run may not have come here.
func (b *backlog) unsure(runID string) {
	if _, noted := b.suspects[runID]; !noted {
		b.suspect(runID, suspect{})
	}
}

func (b *backlog) suspect(runID string, s suspect) {
	if _, noted := b.suspects[runID]; noted || len(b.suspects) < maxSuspects {
		b.suspects[runID] = s
	}
}

// taken moves an amount from what waits to what is under way.
func (b *backlog) taken(queue string, own amount) {
	b.pending, b.writing = b.pending.minus(own), b.writing.plus(own)
	s := b.shares[queue]
	s.pending, s.writing = s.pending.minus(own), s.writing.plus(own)
	b.shares[queue] = s
}

// written counts out what was under way.
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

// store notes whether the store works.
func (b *backlog) store(works bool) {
	b.away = !works
	b.release()
}

// wait returns what is closed when there is room, nil where there is. In a full backlog there is room for a task queue that has less
// in it than one has on average: those that have filled it wait. One of all has at least the average, so that the backlog is bounded.
func (b *backlog) wait(queue string) <-chan struct{} {
	all := b.all()
	if b.away || !all.beyond(fullSteps, fullBytes) {
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
	if b.room != nil && (b.away || !b.all().beyond(fullSteps/2, fullBytes/2)) {
		close(b.room)
		b.room = nil
	}
}

// requests are for some of the runs whose rows are to be repaired.
func (b *backlog) requests() []run.RepairRequest {
	var list []run.RepairRequest
	for id, s := range b.suspects {
		s.since = false
		b.suspects[id] = s
		request := run.RepairRequest{RunID: id, Reason: "the answer to the completion of a workflow task was lost", After: requestAfter}
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

// requested forgets runs whose repair is requested. Where an update was dropped meanwhile, which the repair may be too early for, the
// run is only not dropped from any more, and is requested again.
func (b *backlog) requested(list []run.RepairRequest) {
	for _, r := range list {
		if s := b.suspects[r.RunID]; s.since {
			b.suspects[r.RunID] = suspect{lost: true}
		} else {
			delete(b.suspects, r.RunID)
		}
	}
}

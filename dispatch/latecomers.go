package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/heart"
	"github.com/signalbox-dev/signalbox/dispatch/internal/owner"
	"github.com/signalbox-dev/signalbox/dispatch/internal/pace"
)

const (
	// latePace is how many dispatchers a second are told that a worker is late, or asked whether they have struck it off.
	latePace = 50
	// doubtsAtOnce is how many are asked between two readings of the heartbeats, doubtMost the longest pause until one is asked again.
	doubtsAtOnce = 100
	doubtMost    = 10 * time.Minute
	// lateAtOnce is how many are reported to a dispatcher without asking first which of them it has on its list: reports stay in its history.
	lateAtOnce = 100
)

// telling is what a dispatcher was told of its workers under one ownership.
type telling struct {
	epoch int64
	// known are those it was told of.
	known map[string]bool
	// doubt are those of them that it may still have on its list; it is asked about them when again is due.
	doubt []string
	again retry
	// listing is when it is asked for its list after it did not answer.
	listing retry
}

// retry is when something is done again, and after twice the pause each time.
type retry struct {
	due   time.Time
	pause time.Duration
}

func (r *retry) later(first time.Duration) {
	r.pause = min(max(2*r.pause, first), max(first, doubtMost))
	r.due = time.Now().Add(r.pause)
}

func (r *retry) isDue() bool { return !time.Now().Before(r.due) }

// watchWorkers reads the heartbeats, and reports to the dispatchers that this process owns which of their workers seem to be gone:
// one that is parked looks after them only when it is told. What it could not do about them, it is told of again.
func (d *Dispatchers) watchWorkers(ctx context.Context) {
	told := map[Name]*telling{}
	d.scan(ctx, told)
	every(ctx, d.o.Timing.Heartbeat, func(ctx context.Context) { d.scan(ctx, told) })
}

func (d *Dispatchers) scan(ctx context.Context, told map[Name]*telling) {
	d.mu.Lock()
	known := d.lives
	d.mu.Unlock()
	owned := d.owned()
	for _, o := range owned {
		for _, w := range o.Workers {
			if _, there := known[w.ServerID]; !there {
				d.roster.Hint(contract.WorkerKey(w.ServerID)) // it may have come since all were listed
			}
		}
	}
	bounded, cancel := context.WithTimeout(ctx, choreLimit)
	lives, err := d.roster.Lives(bounded)
	cancel()
	if err != nil {
		return // who beats says that the store is away
	}
	d.mu.Lock()
	d.lives = lives
	d.mu.Unlock()
	if !lives[d.o.ServerID].Alive {
		return // the store lost its memory, or this process its heartbeat: what is missing proves nothing
	}
	d.tell(ctx, lives, owned, told)
}

// tell tells the dispatchers that are owned who is late.
func (d *Dispatchers) tell(ctx context.Context, lives map[string]heart.Life, owned []owner.Ownership, told map[Name]*telling) {
	names := map[Name]bool{}
	asked := 0
	for _, o := range owned {
		names[o.Name] = true
		t := told[o.Name]
		if t == nil || t.epoch != o.Owner.Epoch {
			t = &telling{epoch: o.Owner.Epoch, known: map[string]bool{}}
			told[o.Name] = t
		}
		late := latecomers(lives, o, t.known)
		switch {
		case len(late) > lateAtOnce:
			if asked >= doubtsAtOnce || !t.listing.isDue() {
				continue
			}
			asked++
			var err error
			if late, err = d.listed(ctx, o.Name, t, late); err != nil {
				asked = doubtsAtOnce
			}
			t.again.pause = 0
		case len(late) > 0:
			t.again.pause = 0
		case asked < doubtsAtOnce && t.doubtful(lives):
			asked++
			var err error
			if late, err = d.remaining(ctx, o.Name, t); err != nil {
				asked = doubtsAtOnce // the next that is asked may keep this waiting as long
			}
		default:
			continue
		}
		if len(late) > 0 && d.temporal.Late(ctx, o.Name, late) == nil {
			t.heard(late, d.o.Timing.CheckEvery)
		}
		pace.Sleep(ctx, time.Second/latePace)
	}
	for name := range told {
		if !names[name] {
			delete(told, name)
		}
	}
}

// heard notes that the dispatcher was told. It gets as long as a check of its own takes before it is asked what became of it.
func (t *telling) heard(late []string, checkEvery time.Duration) {
	for _, id := range late {
		t.known[id] = true
		if !slices.Contains(t.doubt, id) {
			t.doubt = append(t.doubt, id)
		}
	}
	t.again.later(checkEvery)
}

// doubtful tells whether the dispatcher is to be asked now. Nobody doubts who is back.
func (t *telling) doubtful(lives map[string]heart.Life) bool {
	t.doubt = slices.DeleteFunc(t.doubt, func(id string) bool { return lives[id].Alive })
	return len(t.doubt) > 0 && t.again.isDue()
}

// listed asks the dispatcher for its list and returns those of the latecomers that are on it. The others count as reported: after many restarts
// there are thousands that ran out, of which it knows none.
func (d *Dispatchers) listed(ctx context.Context, name Name, t *telling, late []string) ([]string, error) {
	state, err := d.temporal.State(ctx, name)
	if err != nil {
		t.listing.later(d.o.Timing.CheckEvery)
		return nil, err
	}
	t.listing = retry{}
	workers := serverIDs(state.Workers)
	return slices.DeleteFunc(late, func(id string) bool {
		if !workers[id] {
			t.known[id] = true
		}
		return !workers[id]
	}), nil
}

// remaining asks the dispatcher which of those it was told of are still on its list. To ask leaves nothing in its history, so it is told
// of nobody again whom it has struck off. One that routes looks after its workers by itself.
func (d *Dispatchers) remaining(ctx context.Context, name Name, t *telling) ([]string, error) {
	state, err := d.temporal.State(ctx, name)
	if err != nil || state.Phase != contract.Parked {
		t.again.later(d.o.Timing.CheckEvery)
		return nil, err
	}
	workers := serverIDs(state.Workers)
	t.doubt = slices.DeleteFunc(t.doubt, func(id string) bool { return !workers[id] })
	return slices.Clone(t.doubt), nil
}

// serverIDs returns the set of the workers' server IDs.
func serverIDs(workers []contract.Worker) map[string]bool {
	ids := make(map[string]bool, len(workers))
	for _, w := range workers {
		ids[w.ServerID] = true
	}
	return ids
}

// latecomers are the workers of a dispatcher that seem to be gone and are not known to, in order. Those whom nobody speaks of any more are
// forgotten: each start of a process has a name of its own.
func latecomers(lives map[string]heart.Life, o owner.Ownership, known map[string]bool) []string {
	listed := serverIDs(o.Workers)
	for id := range known {
		if life, there := lives[id]; life.Alive || !there && !listed[id] {
			delete(known, id)
		}
	}
	var late []string
	for id, life := range lives {
		// What it serves comes last: there may be thousands that are known, with hundreds of projects each.
		if !life.Alive && !known[id] && life.Serves(o.Name.Project) {
			late = append(late, id)
		}
	}
	for id := range listed {
		if _, there := lives[id]; !there && !known[id] {
			late = append(late, id)
		}
	}
	slices.Sort(late)
	return late
}

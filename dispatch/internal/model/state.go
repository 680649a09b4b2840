package model

import "fmt"

// processes is the number of processes, numbered from 1. noActor is 0, and the supervisor has its own number.
const (
	processes  = 2
	noActor    = int8(0)
	supervisor = int8(processes + 1)
)

// sign is the state of the lease.
type sign int8

const (
	none sign = iota
	held
	resigned
	expired
)

// entry is the dispatcher's lease.
type entry struct {
	sign   sign
	holder int8
	token  int8
	// claimed is set once the holder has renewed it with its epoch.
	claimed bool
}

// pair is an ownership.
type pair struct{ epoch, holder int8 }

// run is an open workflow; its ID is 0 if there is none.
type run struct {
	id     int8
	legacy bool
	owner  pair
}

// phase is the next step of a process.
type phase int8

const (
	waiting  phase = iota // it tries to acquire the lease, or does not run
	won                   // it holds the lease and is about to request an epoch
	fenced                // it has an epoch and is about to renew the lease
	sure                  // it is about to observe Temporal, and to decide
	ending                // it is about to terminate the observed run
	starting              // it is about to start a run
	adopting              // it is about to adopt the observed run
	owning                // it owns the dispatcher
	leaving               // it is about to resign
)

// process is a process that serves the dispatcher.
type process struct {
	phase  phase
	token  int8
	epoch  int8
	before sign // how the previous owner ended
	// lapsed is set if the lease of a previous owner with an epoch expired: its process may be alive.
	lapsed bool
	saw    int8 // the observed run
}

// watcher is the state of the supervisor.
type watcher struct {
	phase duty
	// read is the token of the entry that was read, token that of the entry to delete, target the run to terminate.
	read, token, target int8
	// lost is set if the store lost its entries after the supervisor acquired the lease.
	lost bool
}

// duty is the next step of the supervisor.
type duty int8

const (
	snapshot duty = iota // it is about to read everything, and to plan
	guarding             // it is about to acquire the lease of the stale dispatcher
	striking             // it is about to terminate
	clearing             // it is about to delete the entry
)

// state is the state of the model. It is comparable, and the key of the exploration.
type state struct {
	lease entry
	// counter is the epoch allocator of the lease store, for the defect EpochFromLeases.
	counter int8
	// fence is the owner that may claim, handed the highest allocated epoch.
	fence  pair
	handed int8
	open   run
	// flying is an adoption of run aim without an answer: it may still arrive.
	flying    pair
	aim       int8
	processes [processes]process
	watcher   watcher
}

const (
	// fresh is a new token or run, lost one that no longer exists.
	fresh int8 = 8
	lost  int8 = 9
)

// renamed returns the state with the smallest numbers of the same order. A token other than the entry's and a run that
// is not open can never be current again, so all of these are equal. Epochs keep their order, and consecutive ones stay
// consecutive.
func (s *state) renamed() state {
	out := *s
	out.rename()
	return out
}

func (s *state) rename() {
	token, id := s.lease.token, s.open.id
	s.lease.token, s.open.id = min(token, 1), min(id, 1)
	for i := range s.processes {
		p := &s.processes[i]
		p.token, p.saw = same(p.token, token, 0), same(p.saw, id, 0)
	}
	w := &s.watcher
	w.token, w.read, w.target = same(w.token, token, 0), same(w.read, token, lost), same(w.target, id, 0)
	if s.aim = same(s.aim, id, 0); s.aim == 0 {
		s.flying = pair{}
	}
	s.tighten()
}

// same renames a number to 1 if it is the current one, and to other if it is another.
func same(n, in, other int8) int8 {
	switch n {
	case 0:
		return 0
	case in:
		return 1
	default:
		return other
	}
}

// tighten renames the epochs.
func (s *state) tighten() {
	epochs := [5 + processes]*int8{&s.counter, &s.fence.epoch, &s.handed, &s.open.owner.epoch, &s.flying.epoch}
	for i := range s.processes {
		epochs[5+i] = &s.processes[i].epoch
	}
	var used [64]bool
	var most int8
	for _, e := range epochs {
		used[*e] = true
		most = max(most, *e)
	}
	var names [64]int8
	var last, to int8
	for v := int8(1); v <= most; v++ {
		if used[v] {
			to += min(v-last, 2)
			last, names[v] = v, to
		}
	}
	for _, e := range epochs {
		*e = names[*e]
	}
}

// owned reports whether the dispatcher is healthy: its owner runs and holds the lease.
func (s *state) owned() bool {
	owner := s.open.owner
	if s.open.id == 0 || owner.holder == noActor {
		return false
	}
	p := s.at(owner.holder)
	return p.phase == owning && p.epoch == owner.epoch && s.mine(owner.holder)
}

// routing reports whether the dispatcher is healthy and may claim.
func (s *state) routing() bool { return s.owned() && s.open.owner == s.fence }

// mine reports whether a process holds the lease, by the token of its acquisition.
func (s *state) mine(proc int8) bool {
	return s.lease.sign == held && s.lease.holder == proc && s.lease.token == s.at(proc).token
}

// at returns a process.
func (s *state) at(proc int8) *process { return &s.processes[proc-1] }

// String returns the state for a line of a trace.
func (s *state) String() string {
	text := "lease " + map[sign]string{
		none: "absent", held: "held", resigned: "resigned", expired: "expired"}[s.lease.sign]
	if s.lease.sign != none {
		text += " by " + actorName(s.lease.holder)
	}
	text += fmt.Sprintf(" · inbox at %d/%d", s.fence.epoch, s.fence.holder)
	if s.open.id != 0 {
		text += fmt.Sprintf(" · open with %d/%d", s.open.owner.epoch, s.open.owner.holder)
	}
	return text
}

func actorName(proc int8) string {
	switch proc {
	case noActor:
		return "time"
	case supervisor:
		return "the supervisor"
	default:
		return fmt.Sprintf("process %d", proc)
	}
}

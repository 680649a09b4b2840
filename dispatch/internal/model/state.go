package model

import "fmt"

// processes is how many take part, numbered from 1; nobody is 0, and the supervisor has a number of its own.
const (
	processes  = 2
	nobody     = int8(0)
	supervisor = int8(processes + 1)
)

// sign is what the store says of the lease.
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
}

// pair is an ownership.
type pair struct{ epoch, holder int8 }

// run is an open workflow; its ID is 0 where there is none.
type run struct {
	id     int8
	legacy bool
	owner  pair
}

// phase is what a process does next.
type phase int8

const (
	waiting  phase = iota // it tries to win the lease, or does not run at all
	won                   // it has the lease and is about to ask the inbox for an epoch
	fenced                // it has an epoch and is about to renew the lease
	sure                  // it is about to look at Temporal, and to decide
	ending                // it is about to terminate what it saw
	starting              // it is about to start one
	adopting              // it is about to adopt what it saw
	owning                // it owns the dispatcher
	leaving               // it is about to resign
)

// process is one that works for the dispatcher.
type process struct {
	phase  phase
	token  int8
	epoch  int8
	before sign // what became of the owner before
	saw    int8 // the run that it is about to act upon
}

// watcher is the supervisor.
type watcher struct {
	phase duty
	// read is the token of the entry that it read, token that of the entry to delete, target the run to end.
	read, token, target int8
	// lost tells that the store lost its entries since it took the lease.
	lost bool
}

// duty is what the supervisor does next.
type duty int8

const (
	reading  duty = iota // it is about to read everything, and to plan
	guarding             // it is about to take the lease of what it found
	striking             // it is about to terminate
	clearing             // it is about to delete the entry
)

// state is everything. It is comparable, and the key of the exploration.
type state struct {
	lease entry
	// counter is the number that the store hands out, for the defect that takes epochs from there.
	counter int8
	// fence is who may claim, handed the highest epoch that was handed out.
	fence  pair
	handed int8
	open   run
	// flying is an adoption of run aim that was sent and not answered: it may yet arrive.
	flying    pair
	aim       int8
	processes [processes]process
	watcher   watcher
}

const (
	// fresh is a token or a run that there is not yet, lost one that is no longer there.
	fresh int8 = 8
	lost  int8 = 9
)

// renamed returns the state with the smallest numbers that compare alike. A token that is not the entry's, and a run that is
// not open, never will be again, so that all of these are one. Epochs keep their order, and the next one stays the next one.
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

// same renames a number to 1 if it is the one in question, and to other if it is another.
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

// owned tells whether there is a dispatcher whose owner is there and holds the lease: it is healthy.
func (s *state) owned() bool {
	owner := s.open.owner
	if s.open.id == 0 || owner.holder == nobody {
		return false
	}
	p := s.at(owner.holder)
	return p.phase == owning && p.epoch == owner.epoch && s.mine(owner.holder)
}

// routing tells whether there is one that may claim as well.
func (s *state) routing() bool { return s.owned() && s.open.owner == s.fence }

// mine tells whether the lease is a process's, by the token of its acquisition.
func (s *state) mine(who int8) bool {
	return s.lease == entry{held, who, s.at(who).token}
}

// at returns a process.
func (s *state) at(who int8) *process { return &s.processes[who-1] }

// String is what a line of a trace shows.
func (s *state) String() string {
	text := "lease " + map[sign]string{none: "absent", held: "held", resigned: "resigned", expired: "expired"}[s.lease.sign]
	if s.lease.sign != none {
		text += " by " + actor(s.lease.holder)
	}
	text += fmt.Sprintf(" · inbox at %d/%d", s.fence.epoch, s.fence.holder)
	if s.open.id != 0 {
		text += fmt.Sprintf(" · open with %d/%d", s.open.owner.epoch, s.open.owner.holder)
	}
	return text
}

func actor(who int8) string {
	switch who {
	case nobody:
		return "time"
	case supervisor:
		return "the supervisor"
	default:
		return fmt.Sprintf("process %d", who)
	}
}

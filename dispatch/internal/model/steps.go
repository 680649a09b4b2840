package model

// The invariants, as texts of their violations.
const (
	twoOpen     = "two dispatchers are open"
	healthyDies = "a healthy dispatcher is terminated whose owner holds the lease"
	lateClaim   = "a delivery is claimed by a superseded owner"
	epochFalls  = "an epoch does not grow"
	lateHit     = "a late request changes the successor's lease"
	noneRoutes  = "no routing dispatcher is reachable"
)

// step is a possible step.
type step struct {
	// actor does what; why is the reason.
	actor     int8
	what, why string
	to        state
	// fault is set if the step is a failure: liveness is promised without further ones.
	fault bool
	// violated is the violated invariant, empty for none.
	violated string
}

// stepper collects the possible next steps.
type stepper struct {
	Defects
	*decisions
	from state
	out  []step
}

// next returns all possible steps in a state.
func (n *stepper) next(s state) []step {
	n.from, n.out = s, n.out[:0]
	for proc := int8(1); proc <= processes; proc++ {
		n.own(proc)
		if s.at(proc).phase != waiting {
			dead := s
			*dead.at(proc) = process{}
			n.add(step{actor: proc, what: "crashes", to: dead, fault: true})
		}
	}
	n.arrive()
	n.claim()
	n.decay()
	if !n.Unsupervised {
		n.watch()
	}
	return n.out
}

// add adds a step, unless it changes nothing and violates nothing.
func (n *stepper) add(s step) {
	if s.to = s.to.renamed(); s.to != n.from || s.violated != "" {
		n.out = append(n.out, s)
	}
}

func (n *stepper) does(proc int8, what string, to state) {
	n.add(step{actor: proc, what: what, to: to})
}

// own adds a process's next step in acquiring or keeping the dispatcher.
func (n *stepper) own(proc int8) {
	switch n.from.at(proc).phase {
	case waiting:
		n.acquire(proc)
	case won:
		n.fence(proc)
	case fenced:
		n.renew(proc, sure)
	case sure:
		n.decide(proc)
	case ending:
		n.end(proc)
	case starting:
		n.start(proc)
	case adopting:
		n.adopt(proc)
	case owning:
		n.keep(proc)
	case leaving:
		n.resign(proc)
	}
}

func (n *stepper) acquire(proc int8) {
	s := n.from
	if s.lease.sign == held {
		return
	}
	lapsed := s.lease.sign == expired && (s.lease.claimed || n.ExcuseUnclaimed && s.lease.holder != supervisor)
	*s.at(proc) = process{phase: won, before: s.lease.sign, lapsed: lapsed, token: fresh}
	s.lease = entry{sign: held, holder: proc, token: fresh}
	n.does(proc, "acquires the lease", s)
}

func (n *stepper) fence(proc int8) {
	s := n.from
	p := s.at(proc)
	p.epoch = max(s.fence.epoch, s.open.owner.epoch) + 1
	if n.EpochFromLeases {
		s.counter++
		p.epoch = s.counter
	}
	var violated string
	if p.epoch <= s.handed {
		violated = epochFalls
	}
	s.handed, s.fence = max(s.handed, p.epoch), pair{p.epoch, proc}
	p.phase = fenced
	if n.ActUnrenewed {
		p.phase = sure
	}
	n.add(step{actor: proc, what: "is given an epoch", to: s, violated: violated})
}

// renew adds the step in which a process renews its lease.
func (n *stepper) renew(proc int8, then phase) {
	s := n.from
	switch {
	case s.mine(proc):
		s.at(proc).phase, s.lease.claimed = then, true
		n.does(proc, "renews its lease", s)
	case n.RenewWithoutToken && s.lease.sign == held:
		s.at(proc).phase = then
		n.add(step{actor: proc, what: "renews a lease that it has lost", to: s, violated: lateHit})
	default:
		*s.at(proc) = process{}
		n.does(proc, "cannot renew its lease", s)
	}
}

// excuse is why an expired lease is no crash.
type excuse int8

const (
	crashed excuse = iota // it is one
	alive                 // the heartbeat of its holder, which had an epoch, was written later
	failing               // the store was failing
)

// decide observes Temporal and calls plan.Decide. Whether the dispatcher makes progress, and whether an expired lease
// counts as a crash, may be either way: by the heartbeat of its holder, or because the store was seen failing.
func (n *stepper) decide(proc int8) {
	for _, silent := range []bool{false, true} {
		for _, excuse := range []excuse{crashed, alive, failing} {
			s := n.from
			p := s.at(proc)
			before := p.before
			switch {
			case before != expired || excuse == crashed:
			case excuse == failing:
				before = none
				// It counts as a loss.
				s.watcher.lost = s.watcher.phase == striking
			case p.lapsed:
				before = none
			}
			then := n.decideBy(decisionInput{before, s.open.id != 0, s.open.legacy, s.open.owner, pair{p.epoch, proc}, silent},
				n.AdoptInterrupted)
			p.phase, p.saw = then.phase, 0
			switch p.phase {
			case ending, adopting:
				p.saw = s.open.id
			case owning:
				p.before, p.lapsed = none, false
			default:
			}
			n.add(step{actor: proc, what: "decides", why: then.why, to: s})
		}
	}
}

func (n *stepper) end(proc int8) {
	s := n.from
	target := s.at(proc).saw
	s.at(proc).phase, s.at(proc).saw = starting, 0
	n.strike(proc, s, target, true)
}

// strike terminates a run if it is still open. checked is set for processes, whose terminations have no excuse.
func (n *stepper) strike(proc int8, s state, target int8, checked bool) {
	if s.open.id == 0 || (s.open.id != target && !n.TerminateByID) {
		n.does(proc, "terminates a run that is closed", s)
		return
	}
	var violated string
	if n.from.owned() && n.from.open.owner.holder != proc && (checked || !n.from.watcher.lost) {
		violated = healthyDies
	}
	s.open = run{}
	n.add(step{actor: proc, what: "terminates the run that it saw", to: s, violated: violated})
}

// start starts a dispatcher. After an unknown outcome the process observes again.
func (n *stepper) start(proc int8) {
	s := n.from
	p := s.at(proc)
	own := pair{p.epoch, proc}
	var violated string
	switch {
	case s.open.id == 0:
	case n.StartReplaces:
		if s.owned() && s.open.owner.holder != proc {
			violated = healthyDies
		}
	case n.IDsWithServer && s.open.owner.holder != proc:
		violated = twoOpen
	default:
		p.phase = sure
		n.does(proc, "finds one started already", s)
		return
	}
	s.open = run{id: fresh, owner: own}
	unknown := s
	p.phase, p.before, p.lapsed = owning, none, false
	n.add(step{actor: proc, what: "starts one", to: s, violated: violated})
	unknown.at(proc).phase = sure
	n.add(step{actor: proc, what: "starts one, and gets no answer", to: unknown, fault: true, violated: violated})
}

// adopt sends the adoption: it is answered, or it is in flight while its sender has stopped waiting, and requests
// another epoch to decide under. (Sending it again under the same epoch is the same as waiting: Temporal deduplicates
// it by its ID.)
func (n *stepper) adopt(proc int8) {
	s := n.from
	p := s.at(proc)
	target, by := p.saw, pair{p.epoch, proc}
	p.saw = 0
	flying := s
	flying.flying, flying.aim = by, target
	flying.at(proc).phase = won
	if n.DecideOnOldEpoch {
		flying.at(proc).phase = sure
	}
	n.add(step{actor: proc, what: "adopts, and gets no answer", to: flying, fault: true})
	adopted, violated, ok := n.adopted(s, target, by)
	if !ok {
		p.phase = sure
		n.does(proc, "has its adoption rejected", s)
		return
	}
	adopted.at(proc).phase, adopted.at(proc).before, adopted.at(proc).lapsed = owning, none, false
	n.add(step{actor: proc, what: "adopts", to: adopted, violated: violated})
}

// adopted returns the state in which a run has another owner, if the run accepts it.
func (n *stepper) adopted(s state, target int8, by pair) (_ state, violated string, ok bool) {
	if s.open.id == 0 || s.open.id != target {
		return s, "", false
	}
	if by.epoch <= s.open.owner.epoch && by != s.open.owner {
		if !n.AdoptWithoutEpoch {
			return s, "", false
		}
		violated = epochFalls
	}
	s.open = run{id: target, owner: by}
	return s, violated, true
}

// arrive adds the arrival of an adoption in flight.
func (n *stepper) arrive() {
	s := n.from
	if s.flying.holder == noActor {
		return
	}
	by, target := s.flying, s.aim
	s.flying, s.aim = pair{}, 0
	after, violated, _ := n.adopted(s, target, by)
	n.add(step{actor: by.holder, what: "has its adoption arrive late", to: after, violated: violated})
}

// keep adds what an owner notices: that its lease is lost, that a later epoch was allocated, that its dispatcher is
// closed or has another owner.
func (n *stepper) keep(proc int8) {
	n.renew(proc, owning)
	s := n.from
	own := pair{s.at(proc).epoch, proc}
	gone := s.open.owner != own
	if gone || (s.fence != own && !n.IgnoreLaterEpoch) {
		s.at(proc).phase, s.at(proc).before, s.at(proc).epoch = won, none, 0
		n.does(proc, "notices that its dispatcher cannot claim", s)
	}
	s = n.from
	s.at(proc).phase = leaving
	n.add(step{actor: proc, what: "hands over", to: s, fault: true})
}

func (n *stepper) resign(proc int8) {
	s := n.from
	mine := s.mine(proc)
	*s.at(proc) = process{}
	var violated string
	switch {
	case mine:
		s.lease.sign = resigned
	case n.ResignWithoutToken && s.lease.sign == held:
		s.lease.sign, violated = resigned, lateHit
	}
	n.add(step{actor: proc, what: "resigns", to: s, violated: violated})
}

// claim adds a claim by the dispatcher's routing, possibly of an outdated owner. It changes nothing.
func (n *stepper) claim() {
	by := n.from.open.owner
	if by.holder != noActor && (by == n.from.fence || n.ClaimWithoutFence) && by.epoch < n.from.handed {
		n.add(step{actor: by.holder, what: "has its routing claim", to: n.from, violated: lateClaim})
	}
}

// decay adds what happens to the store: the lease expires, its entry is removed, all data is lost.
func (n *stepper) decay() {
	s := n.from
	switch s.lease.sign {
	case held:
		holder := s.lease.holder
		slow := holder == supervisor && s.watcher.token == s.lease.token || holder != supervisor && s.mine(holder)
		s.lease.sign = expired
		n.add(step{actor: noActor, what: "passes, and the lease expires", to: s, fault: slow})
	case none:
		return
	default:
	}
	s = n.from
	s.lease, s.counter = entry{}, 0
	s.watcher.lost = s.watcher.phase == striking
	n.add(step{actor: noActor, what: "passes, and the store has lost everything", to: s, fault: true})
}

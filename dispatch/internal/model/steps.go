package model

// The invariants, as they are told.
const (
	twoOpen     = "two dispatchers are open"
	healthyDies = "a healthy dispatcher is terminated whose owner holds the lease"
	lateClaim   = "a delivery is claimed by a superseded owner"
	epochFalls  = "an epoch does not grow"
	lateHit     = "what comes late hits the successor's lease"
	noneRoutes  = "no dispatcher routes ever again"
)

// step is something that may happen.
type step struct {
	// who does what, and what for.
	who       int8
	what, why string
	to        state
	// fault tells that it needs something to go wrong: what is promised to come about, comes about without.
	fault bool
	// broken is the invariant that it breaks, empty for none.
	broken string
}

// stepper collects what may happen next.
type stepper struct {
	Defects
	*minds
	from state
	out  []step
}

// next returns all that may happen in a state.
func (n *stepper) next(s state) []step {
	n.from, n.out = s, n.out[:0]
	for who := int8(1); who <= processes; who++ {
		n.own(who)
		if s.at(who).phase != waiting {
			dead := s
			*dead.at(who) = process{}
			n.add(step{who: who, what: "crashes", to: dead, fault: true})
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

// add adds a step. What changes nothing is none, unless it breaks something.
func (n *stepper) add(s step) {
	if s.to = s.to.renamed(); s.to != n.from || s.broken != "" {
		n.out = append(n.out, s)
	}
}

func (n *stepper) does(who int8, what string, to state) { n.add(step{who: who, what: what, to: to}) }

// own is a process's next step towards owning the dispatcher, and while it does.
func (n *stepper) own(who int8) {
	switch n.from.at(who).phase {
	case waiting:
		n.acquire(who)
	case won:
		n.fence(who)
	case fenced:
		n.renew(who, sure)
	case sure:
		n.decide(who)
	case ending:
		n.end(who)
	case starting:
		n.start(who)
	case adopting:
		n.adopt(who)
	case owning:
		n.keep(who)
	case leaving:
		n.resign(who)
	}
}

func (n *stepper) acquire(who int8) {
	s := n.from
	if s.lease.sign == held {
		return
	}
	*s.at(who) = process{phase: won, before: s.lease.sign, token: fresh}
	s.lease = entry{held, who, fresh}
	n.does(who, "wins the lease", s)
}

func (n *stepper) fence(who int8) {
	s := n.from
	p := s.at(who)
	p.epoch = max(s.fence.epoch, s.open.owner.epoch) + 1
	if n.EpochFromLeases {
		s.counter++
		p.epoch = s.counter
	}
	var broken string
	if p.epoch <= s.handed {
		broken = epochFalls
	}
	s.handed, s.fence = max(s.handed, p.epoch), pair{p.epoch, who}
	p.phase = fenced
	if n.ActUnrenewed {
		p.phase = sure
	}
	n.add(step{who: who, what: "is given an epoch", to: s, broken: broken})
}

// renew is the step in which a process makes sure of its lease.
func (n *stepper) renew(who int8, then phase) {
	s := n.from
	switch {
	case s.mine(who):
		s.at(who).phase = then
		n.does(who, "renews its lease", s)
	case n.RenewWithoutToken && s.lease.sign == held:
		s.at(who).phase = then
		n.add(step{who: who, what: "renews a lease that it has lost", to: s, broken: lateHit})
	default:
		*s.at(who) = process{}
		n.does(who, "cannot renew its lease", s)
	}
}

// decide looks at Temporal and asks the product's table. Whether the dispatcher makes progress, and whether a lease that ran
// out counts as a crash, may be either way.
func (n *stepper) decide(who int8) {
	for _, silent := range []bool{false, true} {
		for _, excused := range []bool{false, true} {
			s := n.from
			p := s.at(who)
			before := p.before
			if excused && before == expired {
				before = none
				// The store was seen failing, which is as good as its loss.
				s.watcher.lost = s.watcher.phase == striking
			}
			then := n.table(choice{before, s.open.id != 0, s.open.legacy, s.open.owner, pair{p.epoch, who}, silent}, n.AdoptInterrupted)
			p.phase, p.saw = then.phase, 0
			switch p.phase {
			case ending, adopting:
				p.saw = s.open.id
			case owning:
				p.before = none
			default:
			}
			n.add(step{who: who, what: "decides", why: then.why, to: s})
		}
	}
}

func (n *stepper) end(who int8) {
	s := n.from
	target := s.at(who).saw
	s.at(who).phase, s.at(who).saw = starting, 0
	n.strike(who, s, target, true)
}

// strike terminates a run, if it is still open. watched tells that it is a process, whose deed has no excuse.
func (n *stepper) strike(who int8, s state, target int8, watched bool) {
	if s.open.id == 0 || (s.open.id != target && !n.TerminateByID) {
		n.does(who, "terminates a run that is closed", s)
		return
	}
	var broken string
	if n.from.owned() && n.from.open.owner.holder != who && (watched || !n.from.watcher.lost) {
		broken = healthyDies
	}
	s.open = run{}
	n.add(step{who: who, what: "terminates the run that it saw", to: s, broken: broken})
}

// start starts a dispatcher. After an unknown outcome it looks what there is.
func (n *stepper) start(who int8) {
	s := n.from
	p := s.at(who)
	own := pair{p.epoch, who}
	var broken string
	switch {
	case s.open.id == 0:
	case n.StartReplaces:
		if s.owned() && s.open.owner.holder != who {
			broken = healthyDies
		}
	case n.IDsWithServer && s.open.owner.holder != who:
		broken = twoOpen
	default:
		p.phase = sure
		n.does(who, "finds one started already", s)
		return
	}
	s.open = run{id: fresh, owner: own}
	unknown := s
	p.phase, p.before = owning, none
	n.add(step{who: who, what: "starts one", to: s, broken: broken})
	unknown.at(who).phase = sure
	n.add(step{who: who, what: "starts one, and is not told", to: unknown, fault: true, broken: broken})
}

// adopt sends the adoption: it is answered, or is on its way while its sender has given up waiting, and gets another epoch to
// decide under. (To send it again under the same is to wait on: Temporal knows it by its ID.)
func (n *stepper) adopt(who int8) {
	s := n.from
	p := s.at(who)
	target, by := p.saw, pair{p.epoch, who}
	p.saw = 0
	flying := s
	flying.flying, flying.aim = by, target
	flying.at(who).phase = won
	if n.DecideOnOldEpoch {
		flying.at(who).phase = sure
	}
	n.add(step{who: who, what: "adopts, and hears nothing", to: flying, fault: true})
	adopted, broken, ok := n.adopted(s, target, by)
	if !ok {
		p.phase = sure
		n.does(who, "is refused to adopt", s)
		return
	}
	adopted.at(who).phase, adopted.at(who).before = owning, none
	n.add(step{who: who, what: "adopts", to: adopted, broken: broken})
}

// adopted is the state in which a run has another owner, if it takes that one.
func (n *stepper) adopted(s state, target int8, by pair) (_ state, broken string, ok bool) {
	if s.open.id == 0 || s.open.id != target {
		return s, "", false
	}
	if by.epoch <= s.open.owner.epoch && by != s.open.owner {
		if !n.AdoptWithoutEpoch {
			return s, "", false
		}
		broken = epochFalls
	}
	s.open = run{id: target, owner: by}
	return s, broken, true
}

// arrive is the arrival of an adoption that was on its way.
func (n *stepper) arrive() {
	s := n.from
	if s.flying.holder == nobody {
		return
	}
	by, target := s.flying, s.aim
	s.flying, s.aim = pair{}, 0
	after, broken, _ := n.adopted(s, target, by)
	n.add(step{who: by.holder, what: "is late with its adoption", to: after, broken: broken})
}

// keep is what an owner notices: that its lease is lost, that somebody was given an epoch after it, that its dispatcher is
// gone or another's.
func (n *stepper) keep(who int8) {
	n.renew(who, owning)
	s := n.from
	own := pair{s.at(who).epoch, who}
	gone := s.open.owner != own
	if gone || (s.fence != own && !n.DeafOwner) {
		s.at(who).phase, s.at(who).before, s.at(who).epoch = won, none, 0
		n.does(who, "notices that its dispatcher does not claim", s)
	}
	s = n.from
	s.at(who).phase = leaving
	n.add(step{who: who, what: "hands over", to: s, fault: true})
}

func (n *stepper) resign(who int8) {
	s := n.from
	mine := s.mine(who)
	*s.at(who) = process{}
	var broken string
	switch {
	case mine:
		s.lease.sign = resigned
	case n.ResignWithoutToken && s.lease.sign == held:
		s.lease.sign, broken = resigned, lateHit
	}
	n.add(step{who: who, what: "resigns", to: s, broken: broken})
}

// claim is a claim by the dispatcher's routing, which may be that of an owner whose time is over. It changes nothing here.
func (n *stepper) claim() {
	by := n.from.open.owner
	if by.holder != nobody && (by == n.from.fence || n.ClaimWithoutFence) && by.epoch < n.from.handed {
		n.add(step{who: by.holder, what: "has its routing claim", to: n.from, broken: lateClaim})
	}
}

// decay is what happens to the store: the lease runs out, its entry is forgotten, everything is lost.
func (n *stepper) decay() {
	s := n.from
	switch s.lease.sign {
	case held:
		holder := s.lease.holder
		slow := holder == supervisor && s.watcher.token == s.lease.token || holder != supervisor && s.mine(holder)
		s.lease.sign = expired
		n.add(step{who: nobody, what: "passes, and the lease runs out", to: s, fault: slow})
	case none:
		return
	default:
	}
	s = n.from
	s.lease, s.counter = entry{}, 0
	s.watcher.lost = s.watcher.phase == striking
	n.add(step{who: nobody, what: "passes, and the store has lost everything", to: s, fault: true})
}

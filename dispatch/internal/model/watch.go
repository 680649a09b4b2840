package model

// watch adds the supervisor's next step. Its one snapshot is the second one of the product: time passes after it all
// the same.
func (n *stepper) watch() {
	s := n.from
	w := s.watcher
	s.watcher = watcher{}
	if w.phase != snapshot {
		n.add(step{actor: supervisor, what: "crashes", to: s, fault: true})
	}
	switch w.phase {
	case snapshot:
		n.read()
	case guarding:
		if s.lease.sign == held || s.lease.token != w.read {
			n.does(supervisor, "finds the entry changed, and keeps it", s)
			return
		}
		s.lease = entry{sign: held, holder: supervisor, token: fresh}
		s.watcher = watcher{phase: striking, token: fresh, target: w.target}
		n.does(supervisor, "acquires the lease", s)
	case striking:
		s.watcher = watcher{phase: clearing, token: w.token}
		n.strike(supervisor, s, w.target, false)
	case clearing:
		n.clear(w.token)
	}
}

// read reads everything and calls plan.Make.
func (n *stepper) read() {
	s := n.from
	planInput := planInput{s.lease.sign, s.lease.holder, s.open.id != 0, s.open.legacy, s.open.owner, s.fence}
	if n.LeaseIgnored && planInput.lease == held {
		planInput.lease = expired
	}
	switch found := n.plan(planInput); found {
	case "":
	case deadEntry:
		s.watcher = watcher{phase: clearing, token: s.lease.token}
		n.add(step{actor: supervisor, what: "reads", why: found, to: s})
	default:
		s.watcher = watcher{phase: guarding, read: s.lease.token, target: s.open.id}
		if n.Unguarded || n.LeaseIgnored {
			s.watcher = watcher{phase: striking, token: s.lease.token, target: s.open.id}
		}
		n.add(step{actor: supervisor, what: "reads", why: found, to: s})
	}
}

// clear deletes the entry that is its own, or that was read.
func (n *stepper) clear(token int8) {
	s := n.from
	s.watcher = watcher{}
	if s.lease.sign == none || (s.lease.token != token && !n.DeleteWithoutCompare) {
		n.does(supervisor, "finds another entry than its own, and keeps it", s)
		return
	}
	var violated string
	if s.lease.sign == held && s.lease.token != token {
		violated = lateHit
	}
	s.lease = entry{}
	n.add(step{actor: supervisor, what: "deletes the entry", to: s, violated: violated})
}

package leasetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/lease"
)

// seen are the entries that a call showed.
func seen(c Call) []lease.Entry {
	var entries []lease.Entry
	if c.Got != nil {
		entries = append(entries, *c.Got)
	}
	if c.Before != nil {
		entries = append(entries, *c.Before)
	}
	return entries
}

// entries looks at each entry by itself, and at what all that show the same revision have in common.
func (p *past) entries() {
	type content struct {
		token, holder, value       string
		resigned                   bool
		acquired, renewed, expires int64
	}
	known := map[int64]content{}
	first := map[int64]Call{}
	for _, c := range p.calls {
		for _, e := range seen(c) {
			p.entry(c, e)
			now := content{e.Token, e.Holder, string(e.Value), e.State == lease.Resigned, e.AcquiredAt.UnixMicro(), e.RenewedAt.UnixMicro(), e.ExpiresAt.UnixMicro()}
			if before, again := known[e.Revision]; again && before != now {
				p.found("one revision has two contents", first[e.Revision], c)
			} else if !again {
				known[e.Revision], first[e.Revision] = now, c
			}
		}
	}
}

func (p *past) entry(c Call, e lease.Entry) {
	t := p.byToken[e.Token]
	switch {
	case t == nil && !p.tried[e.Token]:
		p.found("an entry has a token that nobody was given", c)
		return
	case e.Key != c.Key:
		p.found("an entry is of another key", c)
	case e.State != lease.StateAt(e.ReadAt, e.ExpiresAt, e.State == lease.Resigned):
		p.found("a state is not what the times say", c)
	case e.AcquiredAt.After(e.RenewedAt) || e.RenewedAt.After(e.ReadAt):
		p.found("the times of an entry are out of order", c)
	case !p.values[e.Token][string(e.Value)]:
		p.found(fmt.Sprintf("an entry has a value %q that its holder never gave it", e.Value), c)
	}
	if t == nil {
		return
	}
	if e.Holder != t.grant.Holder || !e.AcquiredAt.Equal(t.grant.Got.AcquiredAt) {
		p.found("holder and time of an acquisition have changed", t.grant, c)
	}
	resigned := func(r Call) bool { return r.Op == resign && r.Start <= c.End }
	if e.State == lease.Resigned && !slices.ContainsFunc(t.releases, resigned) {
		p.found("an entry is resigned, but nobody did that", t.grant, c)
	}
	for _, r := range t.releases {
		if r.Err == nil && r.End < c.Start && (r.Op == remove || e.State != lease.Resigned) {
			p.found("what was given up is back", r, c)
		}
	}
}

// revisions follow the order in which calls ended before others began.
func (p *past) revisions() {
	byEnd := slices.SortedFunc(slices.Values(p.calls), func(a, b Call) int { return cmp.Compare(a.End, b.End) })
	var floor Call // that showed the highest revision so far
	highest, next := int64(0), 0
	for _, c := range p.calls {
		for ; next < len(byEnd) && byEnd[next].End < c.Start; next++ {
			if e := byEnd[next].Got; e != nil && e.Revision > highest {
				highest, floor = e.Revision, byEnd[next]
			}
		}
		writes := (c.Op == acquire || c.Op == renew) && c.Err == nil
		switch {
		case c.Got != nil && c.Got.Revision < highest:
			p.found("an older revision was read after a newer one", floor, c)
		case writes && c.Got.Revision == highest:
			p.found("a write has not raised the revision", floor, c)
		case c.Op == remove && c.Err == nil && c.Revision < highest:
			p.found("an entry was deleted that had been changed", floor, c)
		case c.Before != nil && c.Before.Revision >= c.Got.Revision:
			p.found("an acquisition has not raised the revision of what it replaced", c)
		}
	}
}

// successions: each acquisition comes after the end of the one before, and shows it.
func (p *past) successions() {
	for i, t := range p.tenures {
		if b := t.grant.Before; b != nil && b.State == lease.Held {
			p.found("an acquisition replaced what was held", t.grant)
		}
		if i == 0 {
			continue
		}
		last, from := p.tenures[i-1], t.grant.Got.AcquiredAt
		expiry := p.expiry(last, func(r Call) bool { return r.Got.RenewedAt.Before(from) })
		if from.Before(expiry) && !last.releasedBy(t.grant.End) {
			p.found("two held it at one time", last.grant, t.grant)
		}
		for _, r := range last.renewals {
			if !r.Got.RenewedAt.Before(from) {
				p.found("it was renewed after another had acquired it", t.grant, r)
			}
		}
		if p.doubtful {
			continue
		}
		if b := t.grant.Before; b != nil && b.Token != last.grant.Got.Token {
			p.found("an acquisition shows another predecessor than it had", last.grant, t.grant)
		}
		if t.grant.Before == nil && !last.deletedBy(t.grant.End) && from.Before(last.vanishes()) {
			p.found("an acquisition does not show its predecessor", last.grant, t.grant)
		}
	}
}

// vanishes is when the entry is forgotten, at the earliest.
func (t *tenure) vanishes() time.Time {
	last := t.grant
	if n := len(t.renewals); n > 0 {
		last = t.renewals[n-1]
	}
	return last.Got.RenewedAt.Add(last.Terms.Retention - slack)
}

// writes under a token succeed only while the lease is held under it.
func (p *past) writes() {
	for _, t := range p.tenures {
		expiry := t.grant.Got.ExpiresAt
		for _, r := range t.renewals {
			if r.Got.Token != r.Token {
				p.found("a renewal returned the lease of another", t.grant, r)
			}
			if len(t.doubts) == 0 && !r.Got.RenewedAt.Before(expiry) {
				p.found("it was renewed after it had run out", t.grant, r)
			}
			expiry = r.Got.ExpiresAt
		}
		for _, r := range t.releases {
			if r.Op == resign && r.Err == nil && len(t.doubts) == 0 && !p.earliest(r.Start).Before(expiry) {
				p.found("it was resigned after it had run out", t.grant, r)
			}
		}
	}
	for _, c := range p.calls {
		if c.Err == nil && (c.Op == renew || c.Op == resign || c.Op == remove) && p.byToken[c.Token] == nil && !p.tried[c.Token] {
			p.found("a token that nobody was given was good enough", c)
		}
	}
}

// refusals have reasons.
func (p *past) refusals() {
	for _, c := range p.calls {
		t := p.byToken[c.Token]
		switch {
		case errors.Is(c.Err, lease.ErrHeld) && (c.Got == nil || c.Got.State != lease.Held):
			p.found("refused because it is held, which it is not", c)
		case errors.Is(c.Err, lease.ErrLost) && t != nil:
			if t.grant.End < c.Start && !t.releasedBy(c.End) && p.latest(c.End).Before(p.expiry(t, func(r Call) bool { return r.End < c.Start })) {
				p.found("a lease that was held counts as lost", t.grant, c)
			}
		case errors.Is(c.Err, lease.ErrNotFound):
			p.absence(c)
		}
	}
}

// absence of an entry has a deletion or the end of its retention for a reason.
func (p *past) absence(c Call) {
	for _, t := range p.tenures {
		if t.grant.End >= c.Start {
			continue
		}
		deleted := func(r Call) bool {
			return r.Op == remove && (r.Err == nil || r.unknown()) && r.Start <= c.End && r.End >= t.grant.Start
		}
		forgotten := t.grant.Got.AcquiredAt.Add(t.grant.Terms.Retention)
		if !slices.ContainsFunc(p.calls, deleted) && p.latest(c.End).Before(forgotten) {
			p.found("an entry is gone before its time", t.grant, c)
		}
	}
}

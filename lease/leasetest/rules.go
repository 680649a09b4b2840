package leasetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/lease"
)

// entriesOf returns the entries in the result of a call.
func entriesOf(c Call) []lease.Entry {
	var entries []lease.Entry
	if c.Got != nil {
		entries = append(entries, *c.Got)
	}
	if c.Before != nil {
		entries = append(entries, *c.Before)
	}
	return entries
}

// checkEntries checks each entry by itself, and that entries with the same revision are equal.
func (p *keyHistory) checkEntries() {
	type content struct {
		token, holder, value       string
		resigned                   bool
		acquired, renewed, expires int64
	}
	known := map[int64]content{}
	first := map[int64]Call{}
	for _, c := range p.calls {
		for _, e := range entriesOf(c) {
			p.checkEntry(c, e)
			now := content{e.Token, e.Holder, string(e.Value), e.State == lease.Resigned, e.AcquiredAt.UnixMicro(),
				e.RenewedAt.UnixMicro(), e.ExpiresAt.UnixMicro()}
			if before, again := known[e.Revision]; again && before != now {
				p.report("two entries with the same revision differ", first[e.Revision], c)
			} else if !again {
				known[e.Revision], first[e.Revision] = now, c
			}
		}
	}
}

func (p *keyHistory) checkEntry(c Call, e lease.Entry) {
	t := p.byToken[e.Token]
	switch {
	case t == nil && !p.unknownTokens[e.Token]:
		p.report("an entry has a token that was never granted", c)
		return
	case e.Key != c.Key:
		p.report("an entry has another key", c)
	case e.State != lease.StateAt(e.ReadAt, e.ExpiresAt, e.State == lease.Resigned):
		p.report("a state contradicts the times", c)
	case e.AcquiredAt.After(e.RenewedAt) || e.RenewedAt.After(e.ReadAt):
		p.report("the times of an entry are out of order", c)
	case !p.values[e.Token][string(e.Value)]:
		p.report(fmt.Sprintf("an entry has a value %q that its holder never wrote", e.Value), c)
	}
	if t == nil {
		return
	}
	if e.Holder != t.call.Holder || !e.AcquiredAt.Equal(t.call.Got.AcquiredAt) {
		p.report("holder or time of an acquisition have changed", t.call, c)
	}
	resigned := func(r Call) bool { return r.Op == resign && r.Start <= c.End }
	if e.State == lease.Resigned && !slices.ContainsFunc(t.releases, resigned) {
		p.report("an entry is resigned without a resignation", t.call, c)
	}
	for _, r := range t.releases {
		if r.Err == nil && r.End < c.Start && (r.Op == remove || e.State != lease.Resigned) {
			p.report("an entry is back after it was given up", r, c)
		}
	}
}

// checkRevisions checks that a call that began after the end of another one does not return a smaller revision.
func (p *keyHistory) checkRevisions() {
	byEnd := slices.SortedFunc(slices.Values(p.calls), func(a, b Call) int { return cmp.Compare(a.End, b.End) })
	var floor Call // the call that returned the highest revision so far
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
			p.report("an older revision was read after a newer one", floor, c)
		case writes && c.Got.Revision == highest:
			p.report("a write has not increased the revision", floor, c)
		case c.Op == remove && c.Err == nil && c.Revision < highest:
			p.report("an entry was deleted after it had changed", floor, c)
		case c.Before != nil && c.Before.Revision >= c.Got.Revision:
			p.report("an acquisition has not increased the revision of the entry it replaced", c)
		}
	}
}

// checkSuccessions checks that each acquisition comes after the end of the previous lease, and returns its entry.
func (p *keyHistory) checkSuccessions() {
	for i, t := range p.grants {
		if b := t.call.Before; b != nil && b.State == lease.Held {
			p.report("an acquisition replaced a lease in force", t.call)
		}
		if i == 0 {
			continue
		}
		last, from := p.grants[i-1], t.call.Got.AcquiredAt
		expiry := p.expiry(last, func(r Call) bool { return r.Got.RenewedAt.Before(from) })
		if from.Before(expiry) && !last.releasedBy(t.call.End) {
			p.report("two leases were in force at the same time", last.call, t.call)
		}
		for _, r := range last.renewals {
			if !r.Got.RenewedAt.Before(from) {
				p.report("a lease was renewed after another acquisition", t.call, r)
			}
		}
		if p.hasUnknownGrants {
			continue
		}
		if b := t.call.Before; b != nil && b.Token != last.call.Got.Token {
			p.report("an acquisition returned a wrong predecessor", last.call, t.call)
		}
		if t.call.Before == nil && !last.deletedBy(t.call.End) && from.Before(last.retainedUntil()) {
			p.report("an acquisition did not return its predecessor", last.call, t.call)
		}
	}
}

// retainedUntil returns until when the entry must be kept.
func (t *grant) retainedUntil() time.Time {
	last := t.call
	if n := len(t.renewals); n > 0 {
		last = t.renewals[n-1]
	}
	return last.Got.RenewedAt.Add(last.Lifetime.Retention - slack)
}

// checkWrites checks that writes with a token succeed only while the lease with that token is in force.
func (p *keyHistory) checkWrites() {
	for _, t := range p.grants {
		expiry := t.call.Got.ExpiresAt
		for _, r := range t.renewals {
			if r.Got.Token != r.Token {
				p.report("a renewal returned another lease", t.call, r)
			}
			if len(t.unknownRenewals) == 0 && !r.Got.RenewedAt.Before(expiry) {
				p.report("a lease was renewed after it had run out", t.call, r)
			}
			expiry = r.Got.ExpiresAt
		}
		for _, r := range t.releases {
			if r.Op == resign && r.Err == nil && len(t.unknownRenewals) == 0 && !p.earliest(r.Start).Before(expiry) {
				p.report("a lease was resigned after it had run out", t.call, r)
			}
		}
	}
	for _, c := range p.calls {
		if c.Err == nil && (c.Op == renew || c.Op == resign || c.Op == remove) && p.byToken[c.Token] == nil &&
			!p.unknownTokens[c.Token] {
			p.report("a token that was never granted was accepted", c)
		}
	}
}

// checkRefusals checks that requests were refused with a reason.
func (p *keyHistory) checkRefusals() {
	for _, c := range p.calls {
		t := p.byToken[c.Token]
		switch {
		case errors.Is(c.Err, lease.ErrHeld) && (c.Got == nil || c.Got.State != lease.Held):
			p.report("an acquisition was refused although no lease was in force", c)
		case errors.Is(c.Err, lease.ErrLost) && t != nil:
			if t.call.End < c.Start && !t.releasedBy(c.End) && p.latest(c.End).Before(p.expiry(t, func(r Call) bool {
				return r.End < c.Start
			})) {
				p.report("a lease in force was reported as lost", t.call, c)
			}
		case errors.Is(c.Err, lease.ErrNotFound):
			p.checkAbsence(c)
		}
	}
}

// checkAbsence checks that the absence of an entry is explained by a deletion or the end of its retention.
func (p *keyHistory) checkAbsence(c Call) {
	for _, t := range p.grants {
		if t.call.End >= c.Start {
			continue
		}
		deleted := func(r Call) bool {
			return r.Op == remove && (r.Err == nil || r.unknown()) && r.Start <= c.End && r.End >= t.call.Start
		}
		forgotten := t.call.Got.AcquiredAt.Add(t.call.Lifetime.Retention)
		if !slices.ContainsFunc(p.calls, deleted) && p.latest(c.End).Before(forgotten) {
			p.report("an entry was removed too early", t.call, c)
		}
	}
}

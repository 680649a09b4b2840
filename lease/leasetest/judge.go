package leasetest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/signalbox-dev/signalbox/lease"
)

// slack is how far two clocks may move apart during one history, and how exact a retention is.
const slack = 20 * time.Millisecond

// Judge says in which ways a history contradicts what a [lease.Store] promises, nothing if it does not. Calls need no order. All
// of the keys' writes must be in it from the first on, and no data may have been lost meanwhile.
func Judge(calls []Call) []string {
	j := &judgement{}
	j.clock(calls)
	keys := map[string][]Call{}
	for _, c := range calls {
		keys[c.Key] = append(keys[c.Key], c)
	}
	tokens := map[string]Call{}
	for _, c := range calls {
		if c.Op != acquire || c.Err != nil {
			continue
		}
		if first, twice := tokens[c.Got.Token]; twice {
			j.found("one token was given twice", first, c)
		}
		tokens[c.Got.Token] = c
	}
	for _, calls := range keys {
		slices.SortFunc(calls, func(a, b Call) int { return cmp.Compare(a.Start, b.Start) })
		k := collect(j, calls)
		k.entries()
		k.revisions()
		k.successions()
		k.writes()
		k.refusals()
	}
	slices.Sort(j.problems)
	return j.problems
}

// judgement gathers what was found, and how the store's clock relates to the one of the calls.
type judgement struct {
	problems []string
	// The store's time less that of the calls lies between these, in microseconds since 1970.
	low, high int64
}

func (j *judgement) found(what string, calls ...Call) {
	text := what
	for _, c := range calls {
		text += "\n  " + c.String()
	}
	j.problems = append(j.problems, text)
}

// clock holds the times at which the store says that it read something against the times of the calls: one clock has one offset.
func (j *judgement) clock(calls []Call) {
	j.low, j.high = math.MinInt64, math.MaxInt64
	var lowest, highest Call
	for _, c := range calls {
		if c.Got == nil {
			continue
		}
		read := c.Got.ReadAt.UnixMicro()
		if low := read - c.End.Microseconds() - 1; low > j.low {
			j.low, lowest = low, c
		}
		if high := read - c.Start.Microseconds() + 1; high < j.high {
			j.high, highest = high, c
		}
	}
	if j.low != math.MinInt64 && j.low > j.high+slack.Microseconds() {
		j.found(fmt.Sprintf("the store's times are not those of one clock: %d µs apart", j.low-j.high), lowest, highest)
	}
}

// latest is the store's time at a time of the calls, or after it.
func (j *judgement) latest(t time.Duration) time.Time {
	return time.UnixMicro(j.high + t.Microseconds()).Add(slack)
}

// earliest is the store's time at a time of the calls, or before it.
func (j *judgement) earliest(t time.Duration) time.Time {
	return time.UnixMicro(j.low + t.Microseconds()).Add(-slack)
}

// tenure is what is known of one acquisition.
type tenure struct {
	grant    Call
	renewals []Call // that succeeded, by RenewedAt
	releases []Call // resignations and deletions that succeeded, or may have
	doubtful bool   // a renewal may have succeeded unseen
}

// expiry is the last one known from writes before the given time of the store.
func (t *tenure) expiry(before time.Time) time.Time {
	last := t.grant.Got.ExpiresAt
	for _, r := range t.renewals {
		if r.Got.RenewedAt.Before(before) {
			last = r.Got.ExpiresAt
		}
	}
	return last
}

// releasedBy tells whether a release may have happened by then.
func (t *tenure) releasedBy(end time.Duration) bool {
	return slices.ContainsFunc(t.releases, func(r Call) bool { return r.Start <= end })
}

// deletedBy tells whether a deletion may have happened by then.
func (t *tenure) deletedBy(end time.Duration) bool {
	return slices.ContainsFunc(t.releases, func(r Call) bool { return r.Op == remove && r.Start <= end })
}

// past is the history of one key.
type past struct {
	*judgement
	calls    []Call // by start
	tenures  []*tenure
	byToken  map[string]*tenure
	tried    map[string]bool // tokens of acquisitions of which nobody knows
	doubtful bool            // there are some, known by token or not
	values   map[string]map[string]bool
}

func collect(j *judgement, calls []Call) *past {
	p := &past{judgement: j, calls: calls, byToken: map[string]*tenure{}, tried: map[string]bool{}, values: map[string]map[string]bool{}}
	for _, c := range calls {
		switch {
		case c.Op != acquire:
		case c.Err == nil:
			t := &tenure{grant: c}
			p.tenures = append(p.tenures, t)
			p.byToken[c.Got.Token] = t
			p.wrote(c.Got.Token, c.Value)
		case c.unknown():
			p.tried[c.Token], p.doubtful = true, true
			p.wrote(c.Token, c.Value)
		}
	}
	slices.SortFunc(p.tenures, func(a, b *tenure) int { return a.grant.Got.AcquiredAt.Compare(b.grant.Got.AcquiredAt) })
	for _, c := range calls {
		if c.Op == renew && c.Value != nil {
			p.wrote(c.Token, c.Value)
		}
		t := p.byToken[c.Token]
		if t == nil || c.Err != nil && !c.unknown() {
			continue
		}
		switch {
		case c.Op == renew && c.Err == nil:
			t.renewals = append(t.renewals, c)
		case c.Op == renew:
			t.doubtful = true
		case c.Op == resign, c.Op == remove:
			t.releases = append(t.releases, c)
		}
	}
	for _, t := range p.tenures {
		slices.SortFunc(t.renewals, func(a, b Call) int { return a.Got.RenewedAt.Compare(b.Got.RenewedAt) })
	}
	return p
}

func (p *past) wrote(token string, value []byte) {
	if p.values[token] == nil {
		p.values[token] = map[string]bool{}
	}
	p.values[token][string(value)] = true
}

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
		call                       Call
	}
	known := map[int64]content{}
	for _, c := range p.calls {
		for _, e := range seen(c) {
			p.entry(c, e)
			now := content{e.Token, e.Holder, string(e.Value), e.State == lease.Resigned, e.AcquiredAt.UnixMicro(), e.RenewedAt.UnixMicro(), e.ExpiresAt.UnixMicro(), Call{}}
			first, again := known[e.Revision]
			if !again {
				now.call = c
				known[e.Revision] = now
				continue
			}
			now.call = first.call
			if fmt.Sprint(now) != fmt.Sprint(first) {
				p.found("one revision has two contents", first.call, c)
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
		expiry := last.expiry(from)
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
			if !t.doubtful && !r.Got.RenewedAt.Before(expiry) {
				p.found("it was renewed after it had run out", t.grant, r)
			}
			expiry = r.Got.ExpiresAt
		}
		for _, r := range t.releases {
			if r.Op == resign && r.Err == nil && !t.doubtful && !p.earliest(r.Start).Before(expiry) {
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
			if t.grant.End < c.Start && !t.releasedBy(c.End) && p.latest(c.End).Before(t.known(c.Start)) {
				p.found("a lease that was held counts as lost", t.grant, c)
			}
		case errors.Is(c.Err, lease.ErrNotFound):
			p.absence(c)
		}
	}
}

// known is the expiry as of the calls that had ended by then.
func (t *tenure) known(by time.Duration) time.Time {
	last := t.grant.Got.ExpiresAt
	for _, r := range t.renewals {
		if r.End < by {
			last = r.Got.ExpiresAt
		}
	}
	return last
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

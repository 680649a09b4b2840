package leasetest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
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
	lines := []string{what}
	for _, c := range calls {
		lines = append(lines, "  "+c.String())
	}
	j.problems = append(j.problems, strings.Join(lines, "\n"))
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
	doubts   []Call // renewals that may have succeeded
	releases []Call // resignations and deletions that succeeded, or may have
}

// expiry is when the lease ran out at the earliest, after the renewals chosen.
func (p *past) expiry(t *tenure, counts func(renewal Call) bool) time.Time {
	earliest := t.grant.Got.ExpiresAt
	for _, r := range t.renewals {
		if counts(r) {
			earliest = r.Got.ExpiresAt
		}
	}
	// With shorter terms than before, a renewal ends a lease sooner.
	for _, r := range t.doubts {
		if until := p.earliest(r.Start).Add(r.Terms.TTL); until.Before(earliest) {
			earliest = until
		}
	}
	return earliest
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
			t.doubts = append(t.doubts, c)
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

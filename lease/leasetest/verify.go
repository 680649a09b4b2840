package leasetest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// slack is how far two clocks may drift apart during one history, and the tolerance of a retention.
const slack = 20 * time.Millisecond

// Verify returns the contradictions between a history and the guarantees of a [lease.Store]; none if the history is
// consistent. The calls may have any order. The history must contain all writes of its keys from the first on, and the
// store must not have lost data meanwhile.
func Verify(calls []Call) []string {
	j := &verifier{}
	j.checkClock(calls)
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
			j.report("one token was granted twice", first, c)
		}
		tokens[c.Got.Token] = c
	}
	for _, calls := range keys {
		slices.SortFunc(calls, func(a, b Call) int { return cmp.Compare(a.Start, b.Start) })
		k := collect(j, calls)
		k.checkEntries()
		k.checkRevisions()
		k.checkSuccessions()
		k.checkWrites()
		k.checkRefusals()
	}
	slices.Sort(j.failures)
	return j.failures
}

// verifier collects contradictions, and the offset between the store's clock and that of the calls.
type verifier struct {
	failures []string
	// The store's time less that of the calls lies between these, in microseconds since 1970.
	low, high int64
}

func (j *verifier) report(what string, calls ...Call) {
	lines := []string{what}
	for _, c := range calls {
		lines = append(lines, "  "+c.String())
	}
	j.failures = append(j.failures, strings.Join(lines, "\n"))
}

// checkClock compares the ReadAt of entries with the times of the calls: the offset of a single clock is constant.
func (j *verifier) checkClock(calls []Call) {
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
		j.report(fmt.Sprintf("the store's times are not from one clock: %d µs apart", j.low-j.high), lowest, highest)
	}
}

// latest returns an upper bound of the store's time at a time of the calls.
func (j *verifier) latest(t time.Duration) time.Time {
	return time.UnixMicro(j.high + t.Microseconds()).Add(slack)
}

// earliest returns a lower bound of the store's time at a time of the calls.
func (j *verifier) earliest(t time.Duration) time.Time {
	return time.UnixMicro(j.low + t.Microseconds()).Add(-slack)
}

// grant is an acquisition that succeeded, with the later calls under its token.
type grant struct {
	call            Call
	renewals        []Call // that succeeded, by RenewedAt
	unknownRenewals []Call // renewals that may have succeeded
	releases        []Call // resignations and deletions that succeeded, or may have
}

// expiry returns the earliest time at which the lease ran out, considering the renewals for which counts returns true.
func (p *keyHistory) expiry(t *grant, counts func(renewal Call) bool) time.Time {
	earliest := t.call.Got.ExpiresAt
	for _, r := range t.renewals {
		if counts(r) {
			earliest = r.Got.ExpiresAt
		}
	}
	// A renewal with a shorter TTL ends the lease sooner.
	for _, r := range t.unknownRenewals {
		if until := p.earliest(r.Start).Add(r.Lifetime.TTL); until.Before(earliest) {
			earliest = until
		}
	}
	return earliest
}

// releasedBy reports whether a resignation or deletion may have happened by a time of the calls.
func (t *grant) releasedBy(end time.Duration) bool {
	return slices.ContainsFunc(t.releases, func(r Call) bool { return r.Start <= end })
}

// deletedBy reports whether a deletion may have happened by a time of the calls.
func (t *grant) deletedBy(end time.Duration) bool {
	return slices.ContainsFunc(t.releases, func(r Call) bool { return r.Op == remove && r.Start <= end })
}

// keyHistory is the history of one key.
type keyHistory struct {
	*verifier
	calls            []Call // by start
	grants           []*grant
	byToken          map[string]*grant
	unknownTokens    map[string]bool // tokens of acquisitions with an unknown outcome
	hasUnknownGrants bool            // there are acquisitions with an unknown outcome
	values           map[string]map[string]bool
}

func collect(j *verifier, calls []Call) *keyHistory {
	p := &keyHistory{verifier: j, calls: calls, byToken: map[string]*grant{}, unknownTokens: map[string]bool{},
		values: map[string]map[string]bool{}}
	for _, c := range calls {
		switch {
		case c.Op != acquire:
		case c.Err == nil:
			t := &grant{call: c}
			p.grants = append(p.grants, t)
			p.byToken[c.Got.Token] = t
			p.recordValue(c.Got.Token, c.Value)
		case c.unknown():
			p.unknownTokens[c.Token], p.hasUnknownGrants = true, true
			p.recordValue(c.Token, c.Value)
		}
	}
	slices.SortFunc(p.grants, func(a, b *grant) int { return a.call.Got.AcquiredAt.Compare(b.call.Got.AcquiredAt) })
	for _, c := range calls {
		if c.Op == renew && c.Value != nil {
			p.recordValue(c.Token, c.Value)
		}
		t := p.byToken[c.Token]
		if t == nil || c.Err != nil && !c.unknown() {
			continue
		}
		switch {
		case c.Op == renew && c.Err == nil:
			t.renewals = append(t.renewals, c)
		case c.Op == renew:
			t.unknownRenewals = append(t.unknownRenewals, c)
		case c.Op == resign, c.Op == remove:
			t.releases = append(t.releases, c)
		}
	}
	for _, t := range p.grants {
		slices.SortFunc(t.renewals, func(a, b Call) int { return a.Got.RenewedAt.Compare(b.Got.RenewedAt) })
	}
	return p
}

func (p *keyHistory) recordValue(token string, value []byte) {
	if p.values[token] == nil {
		p.values[token] = map[string]bool{}
	}
	p.values[token][string(value)] = true
}

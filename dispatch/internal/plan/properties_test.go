package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

var (
	projects = []string{"a", "a-b", "shop"}
	queues   = []string{"c", "b-c", "orders"}
	servers  = []string{"s1", "s2", "s3", ""}
	ages     = []time.Duration{
		0, 5 * time.Second, 12 * time.Second, stale - 1, stale, 30 * time.Second, 5 * time.Minute, retention, time.Hour}
	states = []lease.State{lease.Held, lease.Held, lease.Expired, lease.Resigned}
)

func names() *rapid.Generator[inbox.Name] {
	return rapid.Custom(func(t *rapid.T) inbox.Name {
		return inbox.Name{Project: rapid.SampledFrom(projects).Draw(t, "project"),
			TaskQueue: rapid.SampledFrom(queues).Draw(t, "queue")}
	})
}

func entries() *rapid.Generator[lease.Entry] {
	return rapid.Custom(func(t *rapid.T) lease.Entry {
		server := rapid.SampledFrom(servers[:3]).Draw(t, "server")
		key := wire.WorkerKey(server)
		if rapid.Bool().Draw(t, "owner's") {
			key = wire.OwnerKey(names().Draw(t, "name"))
		}
		e := entry(key, server, rapid.SampledFrom(states).Draw(t, "state"), rapid.SampledFrom(ages).Draw(t, "age"))
		e.AcquiredAt = e.RenewedAt.Add(-rapid.SampledFrom(ages).Draw(t, "held for"))
		return e
	})
}

func opens() *rapid.Generator[plan.Open] {
	return rapid.Custom(func(t *rapid.T) plan.Open {
		name := names().Draw(t, "name")
		o := open(name, rapid.SampledFrom(servers).Draw(t, "owner"), rapid.Int64Range(1, 4).Draw(t, "epoch"))
		o.RunID = fmt.Sprintf("run-%d", rapid.IntRange(0, 1<<30).Draw(t, "run"))
		o.WorkflowID = rapid.SampledFrom([]string{o.WorkflowID, o.WorkflowID, "router-" + name.Project + "-x", "stranger"}).
			Draw(t, "id")
		if rapid.IntRange(0, 3).Draw(t, "memo") == 0 {
			o.Memo = nil
		}
		o.Unread = rapid.IntRange(0, 9).Draw(t, "unread") == 0
		o.Answer = plan.Answer(rapid.IntRange(0, 3).Draw(t, "answer"))
		return o
	})
}

func rows() *rapid.Generator[inbox.Progress] {
	return rapid.Custom(func(t *rapid.T) inbox.Progress {
		p := row(names().Draw(t, "name"), rapid.Int64Range(1, 4).Draw(t, "epoch"))
		p.SinceProgress = rapid.SampledFrom(append([]time.Duration{-1}, ages...)).Draw(t, "since")
		p.Due = rapid.Bool().Draw(t, "due")
		p.Lag = rapid.SampledFrom(ages).Draw(t, "lag")
		return p
	})
}

func snapshots() *rapid.Generator[plan.Snapshot] {
	return rapid.Custom(func(t *rapid.T) plan.Snapshot {
		return plan.Snapshot{
			Entries:  rapid.SliceOfNDistinct(entries(), 0, 8, func(e lease.Entry) string { return e.Key }).Draw(t, "entries"),
			Progress: rapid.SliceOfNDistinct(rows(), 0, 6, func(p inbox.Progress) inbox.Name { return p.Name }).Draw(t, "rows"),
			Open:     rapid.SliceOfNDistinct(opens(), 0, 8, func(o plan.Open) string { return o.RunID }).Draw(t, "open"),
			Malformed: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"worker:s1", "dispatcher:shop:orders", "dispatcher:"}),
				0, 2,
				rapid.ID[string]).Draw(t, "malformed"),
		}
	})
}

func find(r plan.Snapshot, key string) *lease.Entry {
	for i := range r.Entries {
		if r.Entries[i].Key == key {
			return &r.Entries[i]
		}
	}
	return nil
}

func rowOf(r plan.Snapshot, name inbox.Name) *inbox.Progress {
	for i := range r.Progress {
		if r.Progress[i].Name == name {
			return &r.Progress[i]
		}
	}
	return nil
}

// A termination satisfies each of the rules, stated here independently.
func TestTerminationsSatisfyTheRules(t *testing.T) {
	t.Parallel()
	ended := map[plan.Kind]int{}
	check := func(t *rapid.T) {
		snapshot := snapshots().Draw(t, "snapshot")
		p := plan.Make(snapshot, rules)
		require.Len(t, p.Verdicts, len(snapshot.Open))
		require.Equal(t, p, plan.Make(shuffled(t, snapshot), rules), "the order of the snapshot has no effect")
		var stales int
		for _, v := range p.Verdicts {
			if v.Class == dispatchtype.ClassStale {
				stales++
			} else {
				require.Empty(t, v.Kind)
			}
			require.NotEmpty(t, v.Reason)
		}
		require.Equal(t, stales, len(p.Terminate)+len(p.TerminateLater))
		for _, v := range p.Terminate {
			ended[v.Kind]++
			held := v.Entry != nil && v.Entry.State == lease.Held
			require.Equal(t, v.Entry, find(snapshot, wire.OwnerKey(v.Name)))
			require.Equal(t, wire.WorkflowType, v.Type)
			require.False(t, v.Unread)
			require.False(t, v.Memo != nil && v.Memo.Name != v.Name, "its memo has its name")
			require.Equal(t, v.Kind == plan.OlderScheme, held, "an owned dispatcher is never terminated")
			require.NotEmpty(t, snapshot.Entries, "missing data causes no termination")
			if v.Kind == plan.OlderScheme {
				require.NotEqual(t, v.Name.DispatcherID(), v.WorkflowID)
				continue
			}
			require.NotContains(t, []plan.Answer{plan.Answered, plan.Unclear}, v.Answer,
				"an answering dispatcher is never terminated")
			if v.Belongs != wire.OlderScheme {
				progress := rowOf(snapshot, v.Name)
				require.NotNil(t, progress)
				require.False(t, progress.SinceProgress >= 0 && progress.SinceProgress < stale,
					"a dispatcher with progress is never terminated")
				require.False(t, v.Memo != nil && v.Memo.Epoch > progress.Owner.Epoch)
			}
			if v.Entry != nil && v.Belongs != wire.OlderScheme {
				require.GreaterOrEqual(t, v.Entry.Age(), stale)
			}
		}
		for _, d := range p.Delete {
			e := find(snapshot, d.Key)
			require.Equal(t, []any{lease.Expired, e.Token, e.Revision}, []any{e.State, d.Token, d.Revision})
			require.False(t, slices.ContainsFunc(p.Verdicts, func(v plan.Verdict) bool { return v.Name == d.Name }))
		}
	}
	for range 10 {
		rapid.Check(t, check)
	}
	for _, kind := range []plan.Kind{plan.OwnerGone, plan.NoProgress, plan.Orphaned, plan.LegacyKind, plan.OlderScheme} {
		require.NotZero(t, ended[kind], "the snapshots cover %s", kind)
	}
}

func shuffled(t *rapid.T, r plan.Snapshot) plan.Snapshot {
	return plan.Snapshot{
		Entries:   rapid.Permutation(r.Entries).Draw(t, "entries again"),
		Malformed: rapid.Permutation(r.Malformed).Draw(t, "malformed again"),
		Progress:  rapid.Permutation(r.Progress).Draw(t, "rows again"), Open: rapid.Permutation(r.Open).Draw(t, "open again"),
	}
}

// Heartbeats and renewals below the threshold never make a dispatcher stale, whatever their jitter.
func TestJitterBelowThresholdIsNeverStale(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		age := func(what string) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(stale)-1).Draw(t, what))
		}
		state := func(of time.Duration, terms time.Duration) lease.State {
			if of < terms {
				return lease.Held
			}
			return lease.Expired
		}
		leased, beaten := age("lease"), age("heartbeat")
		snapshot := plan.Snapshot{
			Entries: []lease.Entry{owner(orders, "a", state(leased, ttl), leased), beat("a", state(beaten, stale), beaten),
				me()},
			Open:     []plan.Open{open(orders, "a", 1)},
			Progress: []inbox.Progress{due(row(orders, 1), time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "lag")))},
		}
		p := plan.Make(snapshot, rules)
		require.Empty(t, p.Terminate)
		require.Empty(t, p.Delete)
	})
}

// After waiting for Next, the same snapshot has one more stale dispatcher.
func TestNextIsTimeOfNextStaleDispatcher(t *testing.T) {
	t.Parallel()
	waited := 0
	rapid.Check(t, func(t *rapid.T) {
		snapshot := snapshots().Draw(t, "snapshot")
		snapshot.Entries = append(snapshot.Entries, young(beat("other", lease.Held, 0))...)
		for i := range snapshot.Open { // Next does not include answers
			snapshot.Open[i].Answer = plan.Unasked
		}
		p := plan.Make(snapshot, rules)
		if p.Next == 0 {
			return
		}
		waited++
		require.Greater(t, len(plan.Make(later(snapshot, p.Next), rules).Terminate), len(p.Terminate))
	})
	require.NotZero(t, waited)
}

// later returns the same snapshot after a while without changes, in which held leases were renewed.
func later(r plan.Snapshot, by time.Duration) plan.Snapshot {
	r.Entries, r.Progress = slices.Clone(r.Entries), slices.Clone(r.Progress)
	for i := range r.Entries {
		if e := &r.Entries[i]; e.State == lease.Held {
			e.AcquiredAt = e.AcquiredAt.Add(-by)
		} else {
			e.AcquiredAt, e.RenewedAt = e.AcquiredAt.Add(-by), e.RenewedAt.Add(-by)
		}
	}
	for i := range r.Progress {
		p := &r.Progress[i]
		if p.SinceProgress >= 0 {
			p.SinceProgress += by
		}
		if p.Due {
			p.Lag += by
		}
	}
	return r
}

// tenThousand returns the snapshot of a large installation in which one in a hundred owners has crashed.
func tenThousand() plan.Snapshot {
	var r plan.Snapshot
	for i := range 10_000 {
		name := inbox.Name{Project: fmt.Sprintf("project-%d", i), TaskQueue: fmt.Sprintf("signalbox-project-%d", i)}
		state, age := lease.Held, time.Second
		if i%100 == 0 {
			state, age = lease.Expired, time.Minute
		}
		r.Entries = append(r.Entries, owner(name, fmt.Sprintf("server-%d", i%20), state, age))
		r.Open = append(r.Open, open(name, "a", 1))
		r.Progress = append(r.Progress, row(name, 1))
	}
	for i := range 20 {
		state := lease.Held
		if i == 0 {
			state = lease.Expired
		}
		r.Entries = append(r.Entries, beat(fmt.Sprintf("server-%d", i), state, time.Minute))
	}
	return r
}

func TestTenThousand(t *testing.T) {
	t.Parallel()
	p := plan.Make(tenThousand(), rules)
	require.Len(t, p.Verdicts, 10_000)
	require.Len(t, p.Terminate, 20)
	require.Len(t, p.TerminateLater, 80)
}

func BenchmarkTenThousand(b *testing.B) {
	snapshot := tenThousand()
	b.ReportAllocs()
	for b.Loop() {
		plan.Make(snapshot, rules)
	}
}

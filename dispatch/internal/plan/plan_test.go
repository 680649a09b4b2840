package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

const (
	ttl       = 15 * time.Second
	stale     = 20 * time.Second
	retention = 10 * time.Minute
)

var (
	rules  = plan.Rules{StaleAfter: stale, Retention: retention, MaxActions: 20, LegacyIDs: []string{"router-{project}-*"}}
	orders = inbox.Name{Project: "shop", TaskQueue: "orders"}
	// storeNow is the time by the store's clock, which differs from every other clock.
	storeNow = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
)

// entry returns an entry that was last renewed age ago, and acquired an hour before that.
func entry(key, holder string, state lease.State, age time.Duration) lease.Entry {
	return lease.Entry{
		Key: key, Holder: holder, Token: "t-" + holder + key, Revision: 7, State: state,
		AcquiredAt: storeNow.Add(-time.Hour - age), RenewedAt: storeNow.Add(-age), ExpiresAt: storeNow.Add(ttl - age),
		ReadAt: storeNow,
	}
}

func owner(name inbox.Name, holder string, state lease.State, age time.Duration) lease.Entry {
	return entry(wire.OwnerKey(name), holder, state, age)
}

func beat(server string, state lease.State, age time.Duration) lease.Entry {
	return entry(wire.WorkerKey(server), server, state, age)
}

// me returns the heartbeat of the supervisor's own process, which is in any healthy store.
func me() lease.Entry { return beat("me", lease.Held, time.Second) }

// young sets the acquisition times as in a store that lost its data a moment ago.
func young(entries ...lease.Entry) []lease.Entry {
	for i := range entries {
		entries[i].AcquiredAt = entries[i].ReadAt.Add(-time.Second)
	}
	return entries
}

func open(name inbox.Name, by string, epoch int64) plan.Open {
	return plan.Open{Execution: wire.Execution{
		WorkflowID: name.DispatcherID(), RunID: fmt.Sprintf("run-%d", epoch), Type: wire.WorkflowType,
		TaskQueue: name.TaskQueue,
		Memo:      &wire.Memo{Name: name, Owner: by, Epoch: epoch, Interpreter: 1},
	}}
}

func answering(o plan.Open, a plan.Answer) plan.Open {
	o.Answer = a
	return o
}

func legacy(id, queue string) plan.Open {
	return plan.Open{Execution: wire.Execution{
		WorkflowID: id, RunID: "run-" + id, Type: wire.WorkflowType, TaskQueue: queue}}
}

// older returns a dispatcher of the name under an ID of an older scheme, with its owner in the memo.
func older(name inbox.Name, by string) plan.Open {
	o := open(name, by, 1)
	o.WorkflowID, o.RunID = "router-"+name.Project+"-host-17", "run-older"
	return o
}

// row returns the progress of a dispatcher without work whose last claim was an hour ago.
func row(name inbox.Name, epoch int64) inbox.Progress {
	return inbox.Progress{Name: name, Owner: inbox.Owner{Epoch: epoch, Holder: "a"}, SinceProgress: time.Hour,
		Parked: true}
}

func moved(p inbox.Progress, ago time.Duration) inbox.Progress {
	p.SinceProgress, p.Parked = ago, false
	return p
}

func due(p inbox.Progress, lag time.Duration) inbox.Progress {
	p.Due, p.Pending, p.Lag = true, 1, lag
	return p
}

type situation struct {
	name    string
	entries []lease.Entry
	bad     []string
	open    []plan.Open
	rows    []inbox.Progress
	// class, kind and why (a substring) are those of the first verdict; next is the plan's Next.
	class dispatchtype.Class
	kind  plan.Kind
	why   string
	next  time.Duration
}

func (s situation) run(t *testing.T) {
	t.Helper()
	t.Parallel()
	p := plan.Make(plan.Snapshot{Entries: s.entries, Malformed: s.bad, Open: s.open, Progress: s.rows}, rules)
	require.NotEmpty(t, p.Verdicts)
	v := p.Verdicts[0]
	require.Equal(t, []any{s.class, s.kind}, []any{v.Class, v.Kind}, v.Reason)
	require.Contains(t, v.Reason, s.why)
	require.Equal(t, s.next, p.Next)
	require.Equal(t, s.class == dispatchtype.ClassStale, len(p.Terminate) > 0 && p.Terminate[0].RunID == v.RunID,
		"a dispatcher is terminated if and only if it is stale")
}

func TestOwned(t *testing.T) {
	t.Parallel()
	held := owner(orders, "a", lease.Held, 4*time.Second)
	dead := beat("a", lease.Expired, time.Hour)
	for _, s := range []situation{
		{"held", []lease.Entry{held, beat("a", lease.Held, time.Second)}, nil, []plan.Open{open(orders, "a", 3)},
			[]inbox.Progress{row(orders, 3)}, dispatchtype.ClassHealthy, "", `"a" holds the lease`, 0},
		{"held, whatever the heartbeat", []lease.Entry{held, dead}, nil, []plan.Open{open(orders, "a", 3)},
			[]inbox.Progress{row(orders, 3)}, dispatchtype.ClassHealthy, "", "holds", 0},
		{"held, whatever the progress", []lease.Entry{held, me()}, nil, []plan.Open{open(orders, "a", 3)},
			[]inbox.Progress{due(row(orders, 3), time.Hour)}, dispatchtype.ClassHealthy, "", "holds", 0},
		{"held, unknown to the inbox", []lease.Entry{held, me()}, nil, []plan.Open{open(orders, "a", 3)}, nil,
			dispatchtype.ClassHealthy, "", "holds", 0},
		{"held by another than the memo's", []lease.Entry{owner(orders, "b", lease.Held, 0), dead}, nil,
			[]plan.Open{open(orders, "a", 3)}, []inbox.Progress{row(orders, 4)}, dispatchtype.ClassHealthy, "", `"b"`, 0},
		{"held, silent", []lease.Entry{held, dead}, nil, []plan.Open{answering(open(orders, "a", 3), plan.Silent)},
			[]inbox.Progress{row(orders, 3)}, dispatchtype.ClassHealthy, "", "holds", 0},
		{"held, legacy", []lease.Entry{held, dead}, nil, []plan.Open{legacy("dispatcher-shop-orders", "orders")},
			[]inbox.Progress{row(orders, 3)}, dispatchtype.ClassHealthy, "", "holds", 0},
	} {
		t.Run(s.name, s.run)
	}
}

func TestOwnerGone(t *testing.T) {
	t.Parallel()
	out, gone := owner(orders, "a", lease.Expired, 30*time.Second), beat("a", lease.Expired, 25*time.Second)
	ours, rows := []plan.Open{open(orders, "a", 3)}, []inbox.Progress{row(orders, 3)}
	silent := []plan.Open{answering(ours[0], plan.Silent)}
	for _, s := range []situation{
		{"both expired", []lease.Entry{out, gone}, nil, ours, rows, dispatchtype.ClassStale, plan.OwnerGone,
			`the heartbeat of "a" expired`, 0},
		{"both expired, and no worker answers", []lease.Entry{out, gone}, nil, silent, rows, dispatchtype.ClassStale,
			plan.OwnerGone, "", 0},
		{"the process resigned its heartbeat", []lease.Entry{out, beat("a", lease.Resigned, time.Second)}, nil, ours, rows,
			dispatchtype.ClassStale, plan.OwnerGone, "", 0},
		{"the heartbeat is no longer kept", []lease.Entry{out}, nil, ours, rows, dispatchtype.ClassStale, plan.OwnerGone, "",
			0},
		{"a later holder died", []lease.Entry{
			owner(orders, "b", lease.Expired, time.Minute), beat("b", lease.Expired, time.Minute), beat("a", lease.Held, 0)},
			nil, ours, rows, dispatchtype.ClassStale, plan.OwnerGone, `"b"`, 0},
		{"a worker answers", []lease.Entry{out, gone}, nil, []plan.Open{answering(ours[0], plan.Answered)}, rows,
			dispatchtype.ClassUnknown, "", "a worker answers", 0},
		{"it cannot be asked", []lease.Entry{out, gone}, nil, []plan.Open{answering(ours[0], plan.Unclear)}, rows,
			dispatchtype.ClassUnknown, "", "could not be asked", 0},
		{"it makes progress", []lease.Entry{out, gone}, nil, ours, []inbox.Progress{moved(row(orders, 3), 17*time.Second)},
			dispatchtype.ClassUnknown, "", "makes progress", 3 * time.Second},
		{"its progress has stopped", []lease.Entry{out, gone}, nil, ours, []inbox.Progress{moved(row(orders, 3), stale)},
			dispatchtype.ClassStale, plan.OwnerGone, "", 0},
		{"the process is alive", []lease.Entry{out, beat("a", lease.Held, 19*time.Second)}, nil, ours, rows,
			dispatchtype.ClassUnknown, "", "has no new owner yet", 0},
		{"a heartbeat with a shorter lifetime than ours", []lease.Entry{out, beat("a", lease.Expired, 12*time.Second)}, nil,
			ours, rows, dispatchtype.ClassUnknown, "", "", 8 * time.Second},
		{"the lease expired a moment ago", []lease.Entry{owner(orders, "a", lease.Expired, 16*time.Second), gone}, nil, ours,
			rows, dispatchtype.ClassUnknown, "", "", 4 * time.Second},
		{"a heartbeat that cannot be read", []lease.Entry{out}, []string{"worker:a"}, ours, rows, dispatchtype.ClassUnknown,
			"", "", 0},
		{"an epoch that the inbox has not allocated", []lease.Entry{out, gone}, nil, []plan.Open{open(orders, "a", 4)}, rows,
			dispatchtype.ClassUnknown, "", "has not allocated its epoch", 0},
		{"unknown to the inbox", []lease.Entry{out, gone}, nil, ours, nil, dispatchtype.ClassUnknown, "",
			"the inbox has no row", 0},
	} {
		t.Run(s.name, s.run)
	}
}

func TestUnowned(t *testing.T) {
	t.Parallel()
	ours, rows := []plan.Open{open(orders, "a", 3)}, []inbox.Progress{row(orders, 3)}
	resigned := owner(orders, "a", lease.Resigned, time.Minute)
	busy := []inbox.Progress{due(row(orders, 3), time.Minute)}
	for _, s := range []situation{
		{"resigned, nothing to do", []lease.Entry{resigned, me()}, nil, ours, rows, dispatchtype.ClassUnknown, "",
			`"a" resigned`, 0},
		{"resigned, work due for long", []lease.Entry{resigned, me()}, nil, ours, busy, dispatchtype.ClassStale,
			plan.NoProgress, "work has been due for 1m0s", 0},
		{"resigned, work due, answers", []lease.Entry{resigned, me()}, nil, []plan.Open{answering(ours[0], plan.Answered)},
			busy, dispatchtype.ClassUnknown, "", "a worker answers", 0},
		{"resigned, parked for days, work due for a moment", []lease.Entry{resigned, me()}, nil, ours,
			[]inbox.Progress{due(row(orders, 3), time.Second)}, dispatchtype.ClassUnknown, "", "", 19 * time.Second},
		{"resigned a moment ago, work due for long", []lease.Entry{owner(orders, "a", lease.Resigned, 5*time.Second), me()},
			nil, ours, busy, dispatchtype.ClassUnknown, "", "", 15 * time.Second},
		{"resigned, work due, with progress", []lease.Entry{resigned, me()}, nil, ours,
			[]inbox.Progress{moved(busy[0], 5*time.Second)}, dispatchtype.ClassUnknown, "", "makes progress", 15 * time.Second},
		{"resigned, work due, never any progress", []lease.Entry{resigned, me()}, nil, ours,
			[]inbox.Progress{moved(busy[0], -1)}, dispatchtype.ClassStale, plan.NoProgress, "", 0},
		{"expired, the process alive, work due for long",
			[]lease.Entry{owner(orders, "a", lease.Expired, time.Minute), beat("a", lease.Held, 0)}, nil, ours, busy,
			dispatchtype.ClassStale, plan.NoProgress, "", 0},
		{"no entry, work due for long", []lease.Entry{me()}, nil, ours, busy, dispatchtype.ClassStale, plan.NoProgress, "",
			0},
		{"no entry in a young store, work due for long", young(me()), nil, ours, busy, dispatchtype.ClassUnknown, "",
			"no evidence", 19 * time.Second},
		{"no entry for longer than entries are kept", []lease.Entry{me()}, nil, ours, rows, dispatchtype.ClassStale,
			plan.Orphaned, "", 0},
		{"no entry in a young store", young(me()), nil, ours, rows, dispatchtype.ClassUnknown, "", "no evidence",
			retention - time.Second},
		{"no entry, unknown to the inbox", []lease.Entry{me()}, nil, ours, nil, dispatchtype.ClassUnknown, "",
			"the inbox has no row", 0},
		{"no keys at all", nil, nil, ours, busy, dispatchtype.ClassUnknown, "", "no keys at all", 0},
		{"only an entry that cannot be read", nil, []string{"worker:x"}, ours, busy, dispatchtype.ClassUnknown, "",
			"no evidence", stale},
		{"an entry that cannot be read", []lease.Entry{me()}, []string{"dispatcher:shop:orders"}, ours, busy,
			dispatchtype.ClassUnknown, "", "entry cannot be read", 0},
	} {
		t.Run(s.name, s.run)
	}
}

func TestOlderReleases(t *testing.T) {
	t.Parallel()
	rows := []inbox.Progress{row(orders, 3)}
	mine, lone := open(orders, "a", 3), legacy("dispatcher-shop-orders", "orders")
	old, mute := older(orders, "old"), legacy("router-shop-host-17", "orders")
	foreign := old
	foreign.WorkflowID = "a-" + foreign.WorkflowID
	held, alive := owner(orders, "a", lease.Held, 0), beat("old", lease.Held, time.Second)
	for _, s := range []situation{
		{"legacy, the name has no owner", []lease.Entry{me()}, nil, []plan.Open{lone}, rows, dispatchtype.ClassStale,
			plan.LegacyKind, "release without owners", 0},
		{"legacy, resigned a moment ago", []lease.Entry{owner(orders, "a", lease.Resigned, 8*time.Second)}, nil,
			[]plan.Open{lone}, rows, dispatchtype.ClassUnknown, "", "", 12 * time.Second},
		{"legacy, a worker rejects the query", []lease.Entry{me()}, nil, []plan.Open{answering(lone, plan.Answered)}, rows,
			dispatchtype.ClassUnknown, "", "a worker answers", 0},
		{"legacy, young store", young(me()), nil, []plan.Open{lone}, rows, dispatchtype.ClassUnknown, "", "",
			19 * time.Second},
		{"legacy, unknown to the inbox", []lease.Entry{me(), owner(orders, "a", lease.Expired, time.Hour)}, nil,
			[]plan.Open{lone}, nil, dispatchtype.ClassUnknown, "", "the inbox has no row", 0},
		{"legacy, of an unknown name", []lease.Entry{me()}, nil, []plan.Open{lone}, nil, dispatchtype.ClassUnknown, "",
			"cannot be determined", 0},
		{"no ID of ours, with our memo", []lease.Entry{held, alive}, nil, []plan.Open{foreign, mine}, rows,
			dispatchtype.ClassUnknown, "", "its ID does not", 0},
		{"older ID, alive", []lease.Entry{me(), alive}, nil, []plan.Open{old}, rows, dispatchtype.ClassHealthy, "",
			`"old" is alive`, 0},
		{"older ID, alive, ours about to come", []lease.Entry{held, alive}, nil, []plan.Open{old}, rows,
			dispatchtype.ClassUnknown, "", "about to put another", 0},
		{"older ID, gone", []lease.Entry{me(), beat("old", lease.Expired, time.Minute)}, nil, []plan.Open{old}, rows,
			dispatchtype.ClassStale, plan.OwnerGone, `owner "old" expired`, 0},
		{"older ID, gone, answers", []lease.Entry{me(), beat("old", lease.Expired, time.Minute)}, nil,
			[]plan.Open{answering(old, plan.Answered)}, rows, dispatchtype.ClassUnknown, "", "a worker answers", 0},
		{"older ID, gone, not asked", []lease.Entry{me(), beat("old", lease.Expired, time.Minute)}, nil,
			[]plan.Open{answering(old, plan.Unclear)}, rows, dispatchtype.ClassUnknown, "", "could not be asked", 0},
		{"older ID, heartbeat expired a moment ago", []lease.Entry{me(), beat("old", lease.Expired, 12*time.Second)}, nil,
			[]plan.Open{old}, rows, dispatchtype.ClassUnknown, "", "expired a moment ago", 8 * time.Second},
		{"older ID, no heartbeat ever seen", []lease.Entry{me()}, nil, []plan.Open{old}, rows, dispatchtype.ClassUnknown, "",
			"no heartbeat of its owner", 0},
		{"older ID, without memo", []lease.Entry{me()}, nil, []plan.Open{mute}, rows, dispatchtype.ClassUnknown, "",
			"memo has no owner", 0},
		{"older ID on another queue", []lease.Entry{held}, nil, []plan.Open{legacy("router-shop-host-17", "bills")}, rows,
			dispatchtype.ClassUnknown, "", "cannot be determined", 0},
	} {
		t.Run(s.name, s.run)
	}
}

// An older dispatcher is terminated when the current one has an owner, even if its process is alive: only one may
// route.
func TestOlderSchemeIsTerminatedOnceCurrentHasOwner(t *testing.T) {
	t.Parallel()
	for _, old := range []plan.Open{
		older(orders, "old"), legacy("router-shop-host-17", "orders"), answering(older(orders, "old"), plan.Answered)} {
		snapshot := plan.Snapshot{
			Entries:  []lease.Entry{owner(orders, "a", lease.Held, 0), beat("old", lease.Held, 0)},
			Open:     []plan.Open{old, open(orders, "a", 3)},
			Progress: []inbox.Progress{row(orders, 3)},
		}
		p := plan.Make(snapshot, rules)
		require.Len(t, p.Terminate, 1)
		require.Equal(t, []any{old.RunID, plan.OlderScheme, orders},
			[]any{p.Terminate[0].RunID, p.Terminate[0].Kind, p.Terminate[0].Name})
		require.Contains(t, p.Terminate[0].Reason, `dispatcher-shop-orders has taken its place, and "a" owns that`)
		_, cleanup := p.Terminate[0].Cleanup()
		require.False(t, cleanup, "the entry is the successor's")
		require.Equal(t, map[string]int{"shop": 1}, p.Duplicates)
		require.Equal(t, []string{"duplicate dispatcher-shop-orders"}, alerts(p))
	}
}

func alerts(p plan.Plan) []string {
	var out []string
	for _, a := range p.Alerts {
		out = append(out, fmt.Sprintf("%s %s", a.Kind, a.Subject))
	}
	return out
}

// Dashes also join: of two names with one ID, a dispatcher belongs to the name in its memo, or to the one of its queue.
func TestNamesWithOneID(t *testing.T) {
	t.Parallel()
	wide, narrow := inbox.Name{Project: "a-b", TaskQueue: "c"}, inbox.Name{Project: "a", TaskQueue: "b-c"}
	require.Equal(t, wide.DispatcherID(), narrow.DispatcherID())
	entries := []lease.Entry{
		me(), owner(wide, "w", lease.Held, 0),
		owner(narrow, "n", lease.Expired, time.Minute), beat("n", lease.Expired, time.Minute),
	}
	rows := []inbox.Progress{row(wide, 9), row(narrow, 9)}
	for _, of := range []struct {
		open  plan.Open
		name  inbox.Name
		class dispatchtype.Class
	}{
		{open(wide, "w", 1), wide, dispatchtype.ClassHealthy},
		{open(narrow, "n", 1), narrow, dispatchtype.ClassStale},
		{legacy(wide.DispatcherID(), "c"), wide, dispatchtype.ClassHealthy},
		{legacy(wide.DispatcherID(), "b-c"), narrow, dispatchtype.ClassStale},
		{legacy(wide.DispatcherID(), "elsewhere"), inbox.Name{}, dispatchtype.ClassUnknown},
	} {
		p := plan.Make(plan.Snapshot{Entries: entries, Open: []plan.Open{of.open}, Progress: rows}, rules)
		require.Equal(t, []any{of.name, of.class}, []any{p.Verdicts[0].Name, p.Verdicts[0].Class}, p.Verdicts[0].Reason)
		require.Equal(t, of.class == dispatchtype.ClassUnknown, len(p.Alerts) > 0)
	}
}

func TestForeignWorkflowsCauseAlertsOnly(t *testing.T) {
	t.Parallel()
	stranger := open(orders, "a", 1)
	stranger.WorkflowID = "something-else"
	unread := open(orders, "a", 1)
	unread.WorkflowID, unread.Unread = "unread", true
	other := open(orders, "a", 1)
	other.WorkflowID, other.Type = "zz", "foreign.type"
	snapshot := plan.Snapshot{
		Entries: []lease.Entry{me()}, Open: []plan.Open{stranger, unread, other},
		Progress: []inbox.Progress{due(row(orders, 1), time.Hour)}}
	p := plan.Make(snapshot, rules)
	require.Empty(t, p.Terminate)
	require.Equal(t, []string{"foreign something-else", "foreign unread", "foreign zz"}, alerts(p))
	require.Empty(t, p.Duplicates)
}

func TestAlerts(t *testing.T) {
	t.Parallel()
	ahead := plan.Make(plan.Snapshot{
		Entries: []lease.Entry{me()}, Open: []plan.Open{open(orders, "a", 5)}, Progress: []inbox.Progress{row(orders, 3)}},
		rules)
	require.Equal(t, []string{"ahead dispatcher-shop-orders"}, alerts(ahead))
	require.Equal(t, "shop", ahead.Alerts[0].Project)
	blank := plan.Make(plan.Snapshot{Open: []plan.Open{open(orders, "a", 3)}, Progress: []inbox.Progress{row(orders, 3)}},
		rules)
	require.Equal(t, []string{"no_keys 1 dispatchers"}, alerts(blank))
	broken := plan.Make(plan.Snapshot{Malformed: []string{"worker:b", "dispatcher:shop:orders", "dispatcher:??"}}, rules)
	require.Equal(t, []string{"malformed dispatcher:??", "malformed dispatcher:shop:orders", "malformed worker:b"},
		alerts(broken))
	require.Equal(t, "shop", broken.Alerts[1].Project)
	nothing := plan.Make(plan.Snapshot{}, rules)
	require.Empty(t, nothing.Alerts)
	// An outdated list has a closed run beside its successor.
	twice := plan.Make(plan.Snapshot{
		Entries: []lease.Entry{owner(orders, "a", lease.Held, 0)},
		Open:    []plan.Open{open(orders, "a", 3), open(orders, "a", 4)}}, rules)
	require.Empty(t, twice.Alerts)
	require.Equal(t, map[string]int{"shop": 0}, twice.Duplicates)
}

func TestDeadEntriesAreDeleted(t *testing.T) {
	t.Parallel()
	gone, out := beat("a", lease.Expired, time.Minute), owner(orders, "a", lease.Expired, time.Minute)
	want := []plan.Deletion{{Name: orders, Key: "dispatcher:shop:orders", Holder: "a", Token: out.Token, Revision: 7}}
	for name, s := range map[string]struct {
		entries []lease.Entry
		open    []plan.Open
		want    []plan.Deletion
	}{
		"owner gone, nothing open":    {[]lease.Entry{out, gone}, nil, want},
		"owner alive":                 {[]lease.Entry{out, beat("a", lease.Held, 0)}, nil, nil},
		"held":                        {[]lease.Entry{owner(orders, "a", lease.Held, 0), gone}, nil, nil},
		"resigned":                    {[]lease.Entry{owner(orders, "a", lease.Resigned, time.Hour), gone}, nil, nil},
		"expired a moment ago":        {[]lease.Entry{owner(orders, "a", lease.Expired, 16*time.Second), gone}, nil, nil},
		"its dispatcher is open":      {[]lease.Entry{out, gone}, []plan.Open{open(orders, "a", 1)}, nil},
		"an older dispatcher is open": {[]lease.Entry{out, gone}, []plan.Open{older(orders, "a")}, nil},
		"heartbeats are not owners":   {[]lease.Entry{gone}, nil, nil},
		"listed twice, since renewed": {[]lease.Entry{renewed(out), out, gone}, nil, nil},
	} {
		p := plan.Make(plan.Snapshot{Entries: s.entries, Open: s.open, Progress: []inbox.Progress{row(orders, 1)}}, rules)
		require.Equal(t, s.want, p.Delete, name)
	}
}

func renewed(e lease.Entry) lease.Entry {
	e.Revision, e.State, e.RenewedAt = e.Revision+1, lease.Held, e.ReadAt
	return e
}

func TestCleanupDeletesTheEntryThatWasRead(t *testing.T) {
	t.Parallel()
	out := owner(orders, "a", lease.Expired, time.Minute)
	p := plan.Make(plan.Snapshot{
		Entries: []lease.Entry{out, beat("a", lease.Expired, time.Minute)}, Open: []plan.Open{open(orders, "a", 1)},
		Progress: []inbox.Progress{row(orders, 1)}}, rules)
	require.Len(t, p.Terminate, 1)
	d, ok := p.Terminate[0].Cleanup()
	require.True(t, ok)
	require.Equal(t, plan.Deletion{Name: orders, Key: out.Key, Holder: "a", Token: out.Token, Revision: out.Revision}, d)
	require.Equal(t, time.Minute, p.Terminate[0].SilentFor)
	orphan := plan.Make(plan.Snapshot{
		Entries: []lease.Entry{me()}, Open: []plan.Open{open(orders, "a", 1)}, Progress: []inbox.Progress{row(orders, 1)}},
		rules)
	_, ok = orphan.Terminate[0].Cleanup()
	require.False(t, ok)
}

// The longest quiet ones come first; the rest is postponed, and reported.
func TestTerminationsAreLimited(t *testing.T) {
	t.Parallel()
	var snapshot plan.Snapshot
	for i := range 50 {
		name := inbox.Name{Project: fmt.Sprintf("p%02d", i), TaskQueue: "q"}
		snapshot.Entries = append(snapshot.Entries, owner(name, "a", lease.Expired, time.Minute+time.Duration(i)*time.Second))
		snapshot.Open = append(snapshot.Open, open(name, "a", 1))
		snapshot.Progress = append(snapshot.Progress, row(name, 1))
	}
	p := plan.Make(snapshot, rules)
	require.Len(t, p.Terminate, 20)
	require.Len(t, p.TerminateLater, 30)
	require.Equal(t, []string{"p49", "p30", "p29"},
		[]string{p.Terminate[0].Name.Project, p.Terminate[19].Name.Project, p.TerminateLater[0].Name.Project})
	require.Equal(t, []string{"too_many_stale 50 dispatchers"}, alerts(p))
	require.Contains(t, p.Alerts[0].Text, "20 are terminated now, 30 in the next cycles")
	snapshot.Open = nil
	p = plan.Make(snapshot, rules)
	require.Len(t, p.Delete, 20)
	require.Len(t, p.DeleteLater, 30, "the postponed entries are listed")
}

package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

func owned(epoch int64) *signalboxv1.DispatcherOwner {
	return &signalboxv1.DispatcherOwner{ServerId: "host-1-abc", Epoch: epoch}
}

// fill adds three dispatchers to the fake: a healthy one, one whose owner is gone, and one that is mostly unknown.
func (d *dispatchers) fill() {
	d.list = []*signalboxv1.Dispatcher{
		{
			Project: "default", TaskQueue: "signalbox-default", WorkflowId: "dispatcher-default-signalbox-default",
			State: "routing",
			Lease: &signalboxv1.DispatcherLease{
				State: "held", Owner: owned(7), AcquireTime: before(time.Hour), RenewTime: before(time.Second),
				Remaining: durationpb.New(14 * time.Second)},
			Execution: &signalboxv1.DispatcherExecution{
				RunId: "x-2", StartTime: before(time.Hour), Owner: owned(7), Interpreter: 1, HistoryLength: 42},
			Progress: &signalboxv1.DispatcherProgress{
				Owner: owned(7), Head: 90, Routed: 88, Pending: 3, Due: true, SinceProgress: durationpb.New(20 * time.Millisecond),
				Lag: durationpb.New(1500 * time.Millisecond),
			},
			Workers: []*signalboxv1.RegisteredWorker{
				{ServerId: "host-1-abc", Build: "1.2.3", RegisterTime: before(time.Hour)},
				{ServerId: "host-2-def", Build: "1.2.3", RegisterTime: before(time.Hour), Missed: 1}},
			Owners: []*signalboxv1.OwnerChange{
				{Time: before(time.Hour), How: "takeover", Owner: owned(7), Previous: owned(6), RunId: "x-2", EndedRunId: "x-1",
					Reason: "host-0 is gone"}},
		},
		{Project: "lost", State: "stale", Detail: "its owner is gone",
			Lease: &signalboxv1.DispatcherLease{State: "expired", Owner: owned(2), Remaining: durationpb.New(-time.Second)}},
		{Project: "shop", State: "unknown", Errors: []string{"Redis cannot be reached"},
			Execution: &signalboxv1.DispatcherExecution{RunId: "x-3", Owner: owned(3)}},
	}
}

func TestListDispatchers(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	require.Equal(t, "no dispatchers\n", shell.run(t, "dispatcher", "list").err.String())
	a.dispatch.fill()
	c := shell.run(t, "dispatcher", "list", "--state", "routing,stale,unknown")
	require.Zero(t, c.code, c.err.String())
	require.Equal(t, `PROJECT  STATE    OWNER                 LEASE                 PENDING  LAG      DETAIL
default  routing  host-1-abc (epoch 7)  held, expires in 14s  3        1s
lost     stale    host-1-abc (epoch 2)  expired               unknown  unknown  its owner is gone
shop     unknown  host-1-abc (epoch 3)  none                  unknown  unknown
`, c.out.String())
	require.Equal(t, "partial result: Redis cannot be reached\n", c.err.String())
	require.Equal(t, []string{"routing", "stale", "unknown"}, last[*signalboxv1.ListDispatchersRequest](t, a).GetStates())
	require.Contains(t, shell.run(t, "dispatcher", "list", "-o", "wide").out.String(), "x-2")
	var listed []struct {
		Project string `json:"project"`
		State   string `json:"state"`
	}
	require.NoError(t, json.Unmarshal([]byte(shell.run(t, "dispatcher", "list", "-o", "json").out.String()), &listed))
	require.Equal(t, "stale", listed[1].State)
	a.dispatch.refuse = refusal(connect.CodeUnavailable, "LEASES_UNAVAILABLE", "all are away")
	requireRefusal(t, shell.run(t, "dispatcher", "list"), exit.Unavailable, "list dispatchers: all are away")
}

func TestDispatcherShow(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	a.dispatch.fill()
	c := shell.run(t, "dispatcher", "show", "default")
	require.Zero(t, c.code, c.err.String())
	text := c.out.String()
	card, workers, found := strings.Cut(text, "\nregistered workers\n")
	require.True(t, found, text)
	require.Equal(t, `project     default
task queue  signalbox-default
workflow    dispatcher-default-signalbox-default
state       routing
owner       host-1-abc (epoch 7)
lease       held, expires in 14s
events      90 accepted, 88 matched
pending     3 deliveries
lag         1s
progress    20ms ago
execution   x-2
adopted by  host-1-abc (epoch 7)
`, card)
	workers, owners, found := strings.Cut(workers, "\nowners\n")
	require.True(t, found, text)
	require.Contains(t, workers, "1 heartbeat missed")
	require.Equal(t, `SINCE                 OUTCOME   OWNER                 PREVIOUS              REASON
2026-01-31T11:00:00Z  takeover  host-1-abc (epoch 7)  host-1-abc (epoch 6)  host-0 is gone
`, owners)
	wide := shell.run(t, "dispatcher", "show", "default", "-o", "wide").out.String()
	require.Contains(t, wide, "42 events")
	require.Contains(t, wide, "x-1")

	c = shell.run(t, "dispatcher", "show", "shop")
	require.Contains(t, c.out.String(), "no registered workers")
	for _, side := range []string{"state", "temporal"} {
		a.dispatch.list[2].Errors = []string{side + ": no answer"}
		require.Contains(t, shell.run(t, "dispatcher", "show", "shop").out.String(), "registered workers: unknown")
	}
	require.Contains(t, c.err.String(), "Redis cannot be reached")
	var shown struct {
		Owners []any `json:"owners"`
	}
	require.NoError(t, json.Unmarshal([]byte(shell.run(t, "dispatcher", "show", "default", "-o", "json").out.String()),
		&shown))
	require.Len(t, shown.Owners, 1)
	requireRefusal(t, shell.run(t, "dispatcher", "show", "other"), exit.NotFound, `the dispatcher of project "other"`,
		"[PROJECT_NOT_FOUND]")
}

func TestDispatcherHandOver(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	c := shell.run(t, "dispatcher", "handover", "shop", "--reason", "a new node")
	require.Zero(t, c.code, c.err.String())
	require.Equal(t, "owner  host-1 (epoch 7)\n", c.out.String())
	require.Contains(t, c.err.String(), "signalbox dispatcher show shop")
	require.Equal(t, "a new node", last[*signalboxv1.HandOverDispatcherRequest](t, a).GetReason())
	require.JSONEq(t, `{"owner":{"serverId":"host-1","epoch":7}}`,
		shell.run(t, "dispatcher", "handover", "shop", "-o", "json").out.String())
	a.dispatch.refuse = refusal(connect.CodeFailedPrecondition, "DISPATCHER_NOT_OWNED", "it has no owner")
	requireRefusal(t, shell.run(t, "dispatcher", "handover", "shop"), exit.Refused, "[DISPATCHER_NOT_OWNED]")
}

func TestReconcileDispatchers(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	a.dispatch.report = &signalboxv1.ReconcileDispatchersResponse{
		Dispatchers: 1, Healthy: 1, Took: durationpb.New(20 * time.Millisecond)}
	c := shell.run(t, "dispatcher", "reconcile")
	require.Zero(t, c.code, c.err.String())
	require.Empty(t, c.out.String())
	require.Equal(t, "nothing to do: 1 dispatcher checked in 20ms: 1 healthy, 0 stale, 0 unknown\n", c.err.String())
	require.False(t, last[*signalboxv1.ReconcileDispatchersRequest](t, a).GetDryRun())

	a.dispatch.report.Items = []*signalboxv1.PlanItem{
		{Action: "terminate", Kind: "owner_gone", Project: "a", WorkflowId: "dispatcher-a-q", Reason: "its owner is gone",
			Applied: true},
		{Action: "terminate", Kind: "legacy", Project: "b", WorkflowId: "dispatcher-b-q", Error: "Temporal is away"},
		{Action: "delete_entry", Kind: "owner_gone", Project: "c"},
		{Action: "postpone", Kind: "orphaned", Project: "d"},
		{Action: "alert", Kind: "no_keys", Reason: "the store has nothing"},
	}
	require.Equal(t, `ACTION        KIND        PROJECT  WORKFLOW        DONE                      REASON
terminate     owner_gone  a        dispatcher-a-q  yes                       its owner is gone
terminate     legacy      b        dispatcher-b-q  failed: Temporal is away
delete_entry  owner_gone  c                        no longer needed
postpone      orphaned    d                        next time
alert         no_keys                              for you                   the store has nothing
`, shell.run(t, "dispatcher", "reconcile").out.String())
	c = shell.run(t, "dispatcher", "reconcile", "--dry-run")
	require.Contains(t, c.out.String(), "no, dry run")
	require.True(t, last[*signalboxv1.ReconcileDispatchersRequest](t, a).GetDryRun())
	require.Contains(t, shell.run(t, "dispatcher", "reconcile", "-o", "yaml").out.String(), "kind: owner_gone")
	a.dispatch.refuse = retryLater()
	requireRefusal(t, shell.run(t, "dispatcher", "reconcile"), exit.Unavailable, "reconcile the dispatchers",
		"try again in 2s")
}

func TestListWorkers(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	a.dispatch.workers = &signalboxv1.ListWorkersResponse{}
	require.Equal(t, "no workers\n", shell.run(t, "worker", "list").err.String())
	a.dispatch.workers = &signalboxv1.ListWorkersResponse{
		Errors: []string{"Temporal is away"}, Workers: []*signalboxv1.WorkerProcess{
			{
				ServerId: "host-1-abc", State: "alive", Build: "1.2.3", Interpreter: 1, Contract: "c0ffee",
				LastBeatTime: timestamppb.New(time.Now().Add(-3 * time.Second)),
				StaleIn:      durationpb.New(17 * time.Second), BusyTime: timestamppb.New(time.Now().Add(-2 * time.Hour)),
				Registrations: []*signalboxv1.WorkerRegistration{{Project: "default"}, {Project: "shop"}},
			},
			{ServerId: "host-2-def", State: "late", Build: "1.2.2", Projects: []string{"shop"},
				LastBeatTime: timestamppb.New(time.Now().Add(-time.Hour)), StaleIn: durationpb.New(-90 * time.Second)},
			{ServerId: "host-4", State: "unknown", Registrations: []*signalboxv1.WorkerRegistration{{Project: "shop"}}},
			{ServerId: "host-3", State: "silent", Registrations: []*signalboxv1.WorkerRegistration{{Project: "shop"}}},
		}}
	c := shell.run(t, "worker", "list", "--state", "alive,late,silent", "--project", "shop")
	require.Zero(t, c.code, c.err.String())
	require.Regexp(t, `^SERVER      STATE    BUILD    PROJECTS  HEARTBEAT  STALE      BUSY    REGISTERED
host-1-abc  alive    1.2.3    all       \ds ago     in 17s     for 2h  default,shop
host-2-def  late     1.2.2    shop      1h ago     for 1m30s
host-4      unknown  unknown  unknown   unknown                       shop
host-3      silent   unknown  unknown   none                          shop
$`, c.out.String())
	require.Equal(t, "partial result: Temporal is away\n", c.err.String())
	require.Equal(t, "shop", last[*signalboxv1.ListWorkersRequest](t, a).GetProject())
	require.Contains(t, shell.run(t, "worker", "list", "-o", "wide").out.String(), "c0ffee")
	var listed []struct {
		ServerID string `json:"serverId"`
		State    string `json:"state"`
		StaleIn  string `json:"staleIn"`
	}
	require.NoError(t, json.Unmarshal([]byte(shell.run(t, "worker", "list", "-o", "json").out.String()), &listed))
	require.Equal(t, "-90s", listed[1].StaleIn)
	a.dispatch.refuse = refusal(connect.CodeUnavailable, "LEASES_UNAVAILABLE", "away")
	requireRefusal(t, shell.run(t, "worker", "list"), exit.Unavailable, "list workers")
}

package dispatcherflow_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/delivery"
	"github.com/signalbox-dev/signalbox/dispatch/internal/dispatcherflow"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
)

// The SDK's test environment does not end the activities that were running when a run ended.
func TestMain(m *testing.M) {
	const environment = "go.temporal.io/sdk/internal.(*testWorkflowEnvironmentImpl)."
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(environment+"executeActivityWithRetryForTest"),
		goleak.IgnoreAnyFunction(environment+"ExecuteActivity.func2"))
}

var name = inbox.Name{Project: "shop", TaskQueue: "orders"}

// bench is a dispatcher in the SDK's test environment, whose clock skips idle time.
type bench struct {
	t   *testing.T
	env *testsuite.TestWorkflowEnvironment

	mu         sync.Mutex
	routes     []dispatcherflow.RouteInput
	ends       []leg // the ends of the routings in order; the last one repeats
	begun      int
	checks     []dispatcherflow.CheckInput
	found      []dispatcherflow.CheckOutput // the results of the checks in order; then empty ones
	failing    error
	fails      int // how many checks fail; 0: all, while failing is set
	evictFails int // how many reports of an eviction fail
	evicted    [][]string
	timers     int
	length     int
	memo       map[string]any
	refused    []error
	accepted   []dispatchtype.State
}

type leg struct {
	takes time.Duration
	end   delivery.End
	err   error
}

func newBench(t *testing.T, ends ...leg) *bench {
	b := &bench{t: t, ends: ends}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	b.env = suite.NewTestWorkflowEnvironment()
	b.env.RegisterWorkflowWithOptions(dispatcherflow.Run, workflow.RegisterOptions{Name: wire.WorkflowType})
	for _, known := range []struct {
		name string
		as   any
	}{
		{wire.RouteActivity, func(context.Context, dispatcherflow.RouteInput) (delivery.End, error) { return "", nil }},
		{wire.CheckActivity, func(context.Context, dispatcherflow.CheckInput) (dispatcherflow.CheckOutput, error) {
			return dispatcherflow.CheckOutput{}, nil
		}},
		{wire.EvictActivity, func(context.Context, dispatcherflow.EvictInput) error { return nil }},
	} {
		b.env.RegisterActivityWithOptions(known.as, activity.RegisterOptions{Name: known.name})
	}
	b.env.OnActivity(wire.RouteActivity, mock.Anything,
		mock.Anything).Return(func(_ context.Context, in dispatcherflow.RouteInput) (delivery.End, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.routes = append(b.routes, in)
		now := b.ends[min(len(b.routes), len(b.ends))-1]
		return now.end, now.err
	}).AfterFn(func() time.Duration {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.begun++
		return b.ends[min(b.begun, len(b.ends))-1].takes
	})
	b.env.OnActivity(wire.CheckActivity, mock.Anything,
		mock.Anything).Return(func(_ context.Context, in dispatcherflow.CheckInput) (dispatcherflow.CheckOutput, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.checks = append(b.checks, in)
		if b.failing != nil && (b.fails == 0 || len(b.checks) <= b.fails) {
			return dispatcherflow.CheckOutput{}, b.failing
		}
		if at := len(b.checks) - b.fails; at <= len(b.found) {
			return b.found[at-1], nil
		}
		return dispatcherflow.CheckOutput{}, nil
	})
	b.env.OnActivity(wire.EvictActivity, mock.Anything,
		mock.Anything).Return(func(_ context.Context, in dispatcherflow.EvictInput) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.evictFails > 0 {
			b.evictFails--
			return errors.New("the database is away")
		}
		b.evicted = append(b.evicted, in.Evicted)
		return nil
	})
	b.env.OnUpsertMemo(mock.MatchedBy(func(memo map[string]any) bool {
		b.memo = memo
		return true
	})).Return(nil)
	b.env.SetOnTimerScheduledListener(func(string, time.Duration) { b.timers++ })
	b.env.SetTestTimeout(20 * time.Second)
	return b
}

// at calls do at a time; the history grows.
func (b *bench) at(when time.Duration, do func()) {
	b.env.RegisterDelayedCallback(func() {
		b.length += 10
		b.env.SetCurrentHistoryLength(b.length)
		do()
	}, when)
}

// wake sends a signal in one task with the suggestion to continue as new.
func (b *bench) wake(when time.Duration, signal string, arg any) {
	b.at(when, func() {
		b.env.SignalWorkflowSkippingWorkflowTask(signal, arg)
		b.env.RegisterDelayedCallback(func() { b.env.SetContinueAsNewSuggested(true) }, 0)
	})
	b.at(when+time.Second, func() {})
}

// run runs the dispatcher until a time, or until it continues as new; then it returns the next run's input.
func (b *bench) run(in dispatcherflow.Input, until time.Duration) *dispatcherflow.Input {
	if in.Version == 0 {
		in.Version, in.Name, in.Owner, in.CheckEvery = 1, name, inbox.Owner{Epoch: 1, Holder: "a"}, 30*time.Second
	}
	b.at(until, b.env.CancelWorkflow)
	b.env.ExecuteWorkflow(wire.WorkflowType, in)
	require.True(b.t, b.env.IsWorkflowCompleted())
	again, ok := errors.AsType[*workflow.ContinueAsNewError](b.env.GetWorkflowError())
	if !ok {
		require.True(b.t, temporal.IsCanceledError(errors.Unwrap(b.env.GetWorkflowError())), "%v", b.env.GetWorkflowError())
		return nil
	}
	var next dispatcherflow.Input
	require.NoError(b.t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &next))
	return &next
}

func (b *bench) state() dispatchtype.State {
	value, err := b.env.QueryWorkflow(wire.StateQuery)
	require.NoError(b.t, err)
	var s dispatchtype.State
	require.NoError(b.t, value.Get(&s))
	return s
}

func (b *bench) update(update string, arg any) {
	b.env.UpdateWorkflow(update, "", &testsuite.TestUpdateCallback{
		OnAccept: func() {},
		OnReject: func(err error) { b.refused = append(b.refused, err) },
		OnComplete: func(result any, err error) {
			if err != nil {
				b.refused = append(b.refused, err)
			} else if state, ok := result.(dispatchtype.State); ok {
				b.accepted = append(b.accepted, state)
			}
		},
	}, arg)
}

func (b *bench) adopt(holder string, epoch int64) {
	b.update(wire.AdoptUpdate, wire.Adoption{ServerID: holder, Epoch: epoch})
}

func (b *bench) register(ids ...string) {
	for _, id := range ids {
		b.update(wire.RegisterUpdate, wire.Registration{ServerID: id, TaskQueue: name.TaskQueue, Build: "v1"})
	}
}

func (b *bench) doorbell() { b.env.SignalWorkflow(wire.DoorbellSignal, nil) }

func ids(workers []dispatchtype.RegisteredWorker) []string {
	var list []string
	for _, w := range workers {
		list = append(list, w.ServerID)
	}
	return list
}

func TestDispatcherRoutesAndParks(t *testing.T) {
	t.Parallel()
	b := newBench(t, leg{takes: 10 * time.Second, end: delivery.Parked})
	b.at(5*time.Second, func() { require.Equal(t, dispatchtype.Routing, b.state().Phase) })
	b.at(time.Hour, func() {
		require.Equal(t, dispatchtype.Parked, b.state().Phase)
		require.Len(t, b.routes, 1)
		require.Zero(t, b.timers, "a parked dispatcher has no timers")
		b.doorbell()
	})
	b.at(2*time.Hour, func() { require.Len(t, b.routes, 2) })
	b.run(dispatcherflow.Input{}, 30*24*time.Hour)
	require.Equal(t, dispatcherflow.RouteInput{Name: name, Owner: inbox.Owner{Epoch: 1, Holder: "a"}}, b.routes[0])
	require.Len(t, b.routes, 2)
	require.Zero(t, b.timers)
}

func TestDoorbellWhileRoutingIsNotLost(t *testing.T) {
	t.Parallel()
	b := newBench(t, leg{takes: 10 * time.Second, end: delivery.Parked})
	b.at(9*time.Second, b.doorbell)
	b.run(dispatcherflow.Input{}, time.Hour)
	require.Len(t, b.routes, 2, "the doorbell rang before the workflow received the result parked")
}

func TestTurnedRoutingIsStartedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, leg{takes: 10 * time.Minute, end: delivery.Turned}, leg{takes: time.Minute, end: delivery.Parked})
	b.run(dispatcherflow.Input{}, time.Hour)
	require.Len(t, b.routes, 2)
	require.True(t, b.routes[1].Busy, "it polls as long as after work")
}

func TestFailedRoutingIsStartedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, leg{err: temporal.NewNonRetryableApplicationError("no such thing", "broken", nil)},
		leg{end: delivery.Parked})
	b.run(dispatcherflow.Input{}, time.Hour)
	require.Len(t, b.routes, 2)
}

func TestAdoptionWhileRouting(t *testing.T) {
	t.Parallel()
	b := newBench(t, leg{takes: 20 * time.Second, end: delivery.Fenced},
		leg{takes: 30 * time.Second, end: delivery.Parked})
	b.at(10*time.Second, func() { b.adopt("b", 5) })
	b.at(11*time.Second, func() {
		s := b.state()
		require.Equal(t, "b", s.Owner)
		require.Equal(t, int64(5), s.Epoch)
		require.Equal(t, 2, b.begun, "without waiting for the old routing")
	})
	b.at(25*time.Second, func() {
		require.Equal(t, dispatchtype.Routing, b.state().Phase, "the end of the old routing has no effect")
	})
	b.run(dispatcherflow.Input{}, time.Hour)
	require.Len(t, b.routes, 2)
	require.Equal(t, inbox.Owner{Epoch: 5, Holder: "b"}, b.routes[1].Owner)
	require.True(t, b.routes[1].Busy)
	require.Equal(t, wire.Memo{Name: name, Owner: "b", Epoch: 5, Interpreter: 1}.Fields(), b.memo)
	require.Len(t, b.accepted, 1)
	require.Equal(t, int64(5), b.accepted[0].Epoch)
}

func TestAdoptionWhileParked(t *testing.T) {
	t.Parallel()
	b := newBench(t, leg{end: delivery.Parked})
	b.at(time.Minute, func() { b.adopt("b", 2) })
	b.run(dispatcherflow.Input{
		Version: 1, Name: name, Owner: inbox.Owner{Epoch: 1, Holder: "a"}, Parked: true, CheckEvery: 30 * time.Second},
		time.Hour)
	require.Len(t, b.routes, 1, "one routing for the new owner")
	require.Equal(t, dispatcherflow.RouteInput{Name: name, Owner: inbox.Owner{Epoch: 2, Holder: "b"}}, b.routes[0])
}

func TestOutdatedAdoptionIsRejected(t *testing.T) {
	t.Parallel()
	b := newBench(t, leg{end: delivery.Parked})
	b.at(time.Second, func() { b.adopt("b", 3) })
	b.at(2*time.Second, func() {
		b.adopt("a", 2)
		b.adopt("c", 3)
		b.adopt("", 9)
		b.adopt("b", 3) // a repeated adoption succeeds
	})
	b.run(dispatcherflow.Input{}, time.Hour)
	require.Len(t, b.refused, 3)
	for i, kind := range []string{wire.FencedError, wire.FencedError, "invalid"} {
		application, ok := errors.AsType[*temporal.ApplicationError](b.refused[i])
		require.True(t, ok)
		require.Equal(t, kind, application.Type())
	}
	require.Len(t, b.accepted, 2)
	require.Len(t, b.routes, 2, "one for each owner")
}

func TestHigherOfTwoAdoptionsWins(t *testing.T) {
	t.Parallel()
	b := newBench(t, leg{end: delivery.Parked})
	b.at(time.Second, func() { b.adopt("c", 4); b.adopt("b", 3) })
	b.at(time.Minute, func() { require.Equal(t, "c", b.state().Owner) })
	b.run(dispatcherflow.Input{}, time.Hour)
	require.Len(t, b.refused, 1)
}

func TestFencedRoutingWaitsForNextOwner(t *testing.T) {
	t.Parallel()
	b := newBench(t, leg{takes: time.Second, end: delivery.Fenced}, leg{end: delivery.Parked})
	b.at(time.Minute, func() { require.Len(t, b.routes, 1); b.adopt("b", 2) })
	b.run(dispatcherflow.Input{}, time.Hour)
	require.Len(t, b.routes, 2)
}

func TestWorkersRegister(t *testing.T) {
	t.Parallel()
	b := newBench(t, leg{end: delivery.Parked})
	b.at(time.Minute, func() { b.register("w2", "w1", "w3", "w1") })
	b.at(2*time.Minute, func() { require.Equal(t, []string{"w1", "w2", "w3"}, ids(b.state().Workers)) })
	b.at(3*time.Minute, func() { b.register("") })
	b.run(dispatcherflow.Input{}, time.Hour)
	require.Len(t, b.refused, 1)
	require.Empty(t, b.checks, "a parked dispatcher makes no checks by itself")
}

func TestWorkersAreEvictedWhenMissedTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t, leg{takes: 2 * time.Minute, end: delivery.Parked})
	b.found = []dispatcherflow.CheckOutput{
		{Missed: []string{"w1", "w3"}, Left: []string{"w4"}}, // after 30 s
		{Missed: []string{"w1"}},                             // again
	}
	b.at(time.Second, func() { b.register("w1", "w2", "w3", "w4") })
	b.at(35*time.Second, func() {
		require.Equal(t, []string{"w1", "w2", "w3"}, ids(b.state().Workers), "a resigned worker is removed at once")
		require.Equal(t, 1, b.state().Workers[0].Missed)
	})
	b.at(45*time.Second, func() {
		require.Equal(t, []string{"w2", "w3"}, ids(b.state().Workers))
		require.Zero(t, b.state().Workers[1].Missed)
	})
	b.at(50*time.Second, func() { b.register("w1") })
	b.run(dispatcherflow.Input{}, time.Hour)
	require.Equal(t, [][]string{{"w1"}}, b.evicted, "once")
	require.Equal(t, []string{"w1", "w2", "w3", "w4"}, b.checks[0].ServerIDs)
	require.Empty(t, b.checks[0].Reread)
	require.Equal(t, []string{"w1", "w3"}, b.checks[1].Reread)
	require.Equal(t, []string{"w1", "w2", "w3"}, b.checks[2].ServerIDs, "a worker that is back is checked again")
	require.LessOrEqual(t, len(b.checks), 5, "only while it routes")
}

func TestParkedDispatcherChecksReportedWorkers(t *testing.T) {
	t.Parallel()
	b := newBench(t, leg{end: delivery.Parked})
	b.found = []dispatcherflow.CheckOutput{{Missed: []string{"w1"}}, {Missed: []string{"w1"}}}
	b.at(time.Minute, func() { b.register("w1", "w2") })
	b.at(2*time.Minute, func() { b.env.SignalWorkflow(wire.LateSignal, wire.Late{ServerIDs: []string{"stranger"}}) })
	b.at(3*time.Minute, func() {
		require.Empty(t, b.checks, "unknown workers are not checked")
		b.env.SignalWorkflow(wire.LateSignal, wire.Late{ServerIDs: []string{"w1", "stranger"}})
	})
	b.at(4*time.Minute, func() { require.Equal(t, []string{"w2"}, ids(b.state().Workers)) })
	b.run(dispatcherflow.Input{}, time.Hour)
	require.Equal(t, [][]string{{"w1"}}, b.evicted)
	require.Len(t, b.checks, 2)
	require.Equal(t, 1, b.timers, "between the two checks")
	require.Len(t, b.routes, 1, "it stays parked")
}

// late signals late workers, as the owner does.
func (b *bench) late(ids ...string) {
	b.env.SignalWorkflow(wire.LateSignal, wire.Late{ServerIDs: ids})
}

// TestWorkersThatDieTogetherAreEvictedTogether: their heartbeats expire one after another, and the owner reports each
// once.
func TestWorkersThatDieTogetherAreEvictedTogether(t *testing.T) {
	t.Parallel()
	b := newBench(t, leg{end: delivery.Parked})
	b.found = []dispatcherflow.CheckOutput{
		{Missed: []string{"w1"}}, {Missed: []string{"w1", "w2"}}, {Missed: []string{"w2"}}}
	b.at(time.Minute, func() { b.register("w1", "w2", "w3") })
	b.at(2*time.Minute, func() { b.late("w1") })
	b.at(2*time.Minute+5*time.Second, func() { b.late("w2") })
	b.at(3*time.Minute, func() { require.Equal(t, []string{"w3"}, ids(b.state().Workers)) })
	b.run(dispatcherflow.Input{}, time.Hour)
	require.Equal(t, [][]string{{"w1"}, {"w2"}}, b.evicted, "each once")
	require.Len(t, b.checks, 3)
	require.Equal(t, []string{"w2"}, b.checks[2].Reread)
	require.Equal(t, 2, b.timers, "no timer after them")
	require.Len(t, b.routes, 1, "it stays parked")
}

// TestFailedCheckIsRepeated: the owner does not report the same worker again at once.
func TestFailedCheckIsRepeated(t *testing.T) {
	t.Parallel()
	b := newBench(t, leg{end: delivery.Parked})
	b.failing, b.fails = errors.New("redis is away"), 1
	b.found = []dispatcherflow.CheckOutput{{Missed: []string{"w1"}}, {Missed: []string{"w1"}}}
	b.at(time.Minute, func() { b.register("w1", "w2") })
	b.at(2*time.Minute, func() { b.late("w1") })
	b.at(3*time.Minute, func() { require.Equal(t, []string{"w2"}, ids(b.state().Workers)) })
	b.run(dispatcherflow.Input{}, time.Hour)
	require.Equal(t, [][]string{{"w1"}}, b.evicted)
	require.Equal(t, 1, b.timers, "no timer between attempts")
}

// TestPersistentlyFailingChecksEnd: a parked dispatcher waits for the next late signal, or its history would grow while
// the leases are unavailable.
func TestPersistentlyFailingChecksEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t, leg{end: delivery.Parked})
	b.failing, b.fails = errors.New("redis is away"), 0
	b.at(time.Minute, func() { b.register("w1", "w2") })
	b.at(2*time.Minute, func() { b.late("w1") })
	tried := 0
	b.at(10*time.Minute, func() {
		b.mu.Lock()
		tried, b.failing = len(b.checks), nil
		b.mu.Unlock()
		require.Greater(t, tried, 3)
	})
	b.at(time.Hour, func() {
		require.Len(t, b.checks, tried)
		b.found = append(make([]dispatcherflow.CheckOutput, tried), dispatcherflow.CheckOutput{Missed: []string{"w1"}},
			dispatcherflow.CheckOutput{Missed: []string{"w1"}})
		b.late("w1")
	})
	b.run(dispatcherflow.Input{}, 2*time.Hour)
	require.Equal(t, [][]string{{"w1"}}, b.evicted)
	require.Equal(t, 1, b.timers)
}

func TestEvictionReportIsRetried(t *testing.T) {
	t.Parallel()
	b := newBench(t, leg{end: delivery.Parked})
	b.evictFails = 3
	b.found = []dispatcherflow.CheckOutput{{Missed: []string{"w1"}}, {Missed: []string{"w1"}}}
	b.at(time.Minute, func() { b.register("w1", "w2") })
	b.at(2*time.Minute, func() { b.late("w1") })
	b.run(dispatcherflow.Input{}, time.Hour)
	require.Equal(t, [][]string{{"w1"}}, b.evicted)
}

func TestUncheckedWorkersAreNotEvicted(t *testing.T) {
	t.Parallel()
	b := newBench(t, leg{takes: 5 * time.Minute, end: delivery.Parked})
	b.failing = errors.New("redis is away")
	b.at(time.Second, func() { b.register("w1") })
	b.at(4*time.Minute, func() { require.Equal(t, []string{"w1"}, ids(b.state().Workers)) })
	b.run(dispatcherflow.Input{}, time.Hour)
	require.Empty(t, b.evicted)
	require.Greater(t, len(b.checks), 5)
}

func TestContinueAsNewWaitsForRunningActivities(t *testing.T) {
	t.Parallel()
	b := newBench(t, leg{takes: 10 * time.Minute, end: delivery.Turned})
	b.at(time.Second, func() { b.register("w2", "w1"); b.adopt("b", 7) })
	b.at(time.Minute, func() { b.env.SetContinueAsNewSuggested(true) })
	b.at(5*time.Minute, func() { require.False(t, b.env.IsWorkflowCompleted(), "not during a routing") })
	next := b.run(dispatcherflow.Input{}, time.Hour)
	require.NotNil(t, next)
	require.Equal(t, []string{"w1", "w2"}, ids(next.Workers))
	require.Equal(t, inbox.Owner{Epoch: 7, Holder: "b"}, next.Owner)
	require.Equal(t, name, next.Name)
	require.Equal(t, 30*time.Second, next.CheckEvery)
	require.False(t, next.Parked, "there was more to do")
	require.Len(t, b.routes, 2)
}

func TestParkedDispatcherContinuesAsNewParked(t *testing.T) {
	t.Parallel()
	b := newBench(t, leg{end: delivery.Parked})
	b.at(time.Minute, func() { b.register("w1") })
	b.at(2*time.Minute, func() {
		b.env.RegisterDelayedCallback(func() {
			b.length = 5000
			b.env.SetCurrentHistoryLength(b.length)
		}, 0)
		b.register("w2")
	})
	put := false
	b.at(2*time.Minute+2*time.Second, func() { put = true })
	next := b.run(dispatcherflow.Input{}, time.Hour)
	require.NotNil(t, next)
	require.True(t, put, "deferred to another task: an update in the same one would be lost if the server rejected the "+
		"task")
	require.True(t, next.Parked)
	require.Equal(t, []string{"w1", "w2"}, ids(next.Workers))

	again := newBench(t, leg{end: delivery.Parked})
	again.at(time.Minute, func() { require.Equal(t, dispatchtype.Parked, again.state().Phase); again.doorbell() })
	again.run(*next, time.Hour)
	require.Len(t, again.routes, 1)
}

// TestSignalIsCarriedOver: a signal wakes a parked dispatcher whose history has become long, which continues as new
// before it routes.
func TestSignalIsCarriedOver(t *testing.T) {
	t.Parallel()
	b := newBench(t, leg{end: delivery.Parked})
	b.at(time.Minute, func() { b.register("w1") })
	b.wake(2*time.Minute, wire.DoorbellSignal, nil)
	next := b.run(dispatcherflow.Input{}, time.Hour)
	require.NotNil(t, next)
	require.False(t, next.Parked)
	require.Len(t, b.routes, 1, "the next run routes")

	b = newBench(t, leg{end: delivery.Parked})
	b.at(time.Minute, func() { b.register("w1") })
	b.wake(2*time.Minute, wire.LateSignal, wire.Late{ServerIDs: []string{"w1"}})
	next = b.run(dispatcherflow.Input{}, time.Hour)
	require.NotNil(t, next)
	require.True(t, next.Parked)
	require.Equal(t, []string{"w1"}, next.Suspects)

	again := newBench(t, leg{end: delivery.Parked})
	again.found = []dispatcherflow.CheckOutput{{Missed: []string{"w1"}}, {Missed: []string{"w1"}}}
	again.env.SetStartTime(time.Now().Add(time.Hour))
	again.run(*next, time.Hour)
	require.Equal(t, [][]string{{"w1"}}, again.evicted)
}

// TestHistoryIsBoundedUnderDoorbells: a long routing must not keep a dispatcher from continuing as new while doorbells
// fill its history. A run of the first version, which has no such cancellation, waits for the end of its routing.
func TestHistoryIsBoundedUnderDoorbells(t *testing.T) {
	t.Parallel()
	const routed, atOnce, never = 10 * time.Minute, time.Minute, time.Duration(0)
	cases := []struct {
		version, length int
		ended           time.Duration
	}{
		{1, 3900, never},
		{1, 4100, routed},
		{2, 1900, never},
		{2, 2100, atOnce},
		{3, 400, never},
		{3, 600, atOnce},
	}
	for _, c := range cases {
		b := newBench(t, leg{takes: routed, end: delivery.Parked}, leg{takes: time.Hour, end: delivery.Parked})
		b.at(time.Minute, func() {
			b.length = c.length
			b.env.SetCurrentHistoryLength(b.length)
			b.doorbell()
		})
		began := b.env.Now()
		next := b.run(dispatcherflow.Input{
			Version: c.version, Name: name, Owner: inbox.Owner{Epoch: 1, Holder: "a"}, CheckEvery: time.Hour}, 30*time.Minute)
		if c.ended == never {
			require.Nil(t, next, c)
			continue
		}
		require.NotNil(t, next, c)
		require.InDelta(t, c.ended.Seconds(), b.env.Now().Sub(began).Seconds(), 30, c)
		require.False(t, next.Parked, "the doorbell is not lost")
		require.Equal(t, wire.Interpreter, next.Version)
	}
}

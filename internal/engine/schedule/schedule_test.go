package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/event"
)

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 7, 0, time.UTC) }

func timer(name string, spec event.TimerSpec) event.Timer {
	return event.Timer{Project: "shop", Workflow: "orders/" + name, Version: "1.0.0", Since: noon(), Spec: spec}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	cron, every := timer("cron", event.TimerSpec{Cron: "0 3 * * *"}),
		timer("every", event.TimerSpec{Every: 5 * time.Minute})
	after := timer("after", event.TimerSpec{After: time.Minute})
	all := []event.Timer{every, cron, after}
	is := func(t event.Timer) listed {
		return listed{ID: ID(t.Project, t.Workflow), Note: note(t, "k1"), Paused: t.Paused}
	}
	paused, newer := cron, cron
	paused.Paused, newer.Version = true, "1.1.0"
	tests := map[string]struct {
		timers   []event.Timer
		existing []listed
		want     []change
	}{
		"no schedules": {
			all, nil, []change{{create, "signalbox-schedule/shop/orders/cron", cron, note(cron, "k1")},
				{create, "signalbox-schedule/shop/orders/every", every, note(every, "k1")}}},
		"all schedules": {all, []listed{is(every), is(cron)}, nil},
		"paused since": {
			[]event.Timer{paused}, []listed{is(cron)},
			[]change{{update, "signalbox-schedule/shop/orders/cron", paused, note(paused, "k1")}}},
		"unpaused": {
			[]event.Timer{cron}, []listed{is(paused)},
			[]change{{update, "signalbox-schedule/shop/orders/cron", cron, note(cron, "k1")}}},
		"a newer version": {
			[]event.Timer{newer}, []listed{is(cron)},
			[]change{{update, "signalbox-schedule/shop/orders/cron", newer, note(newer, "k1")}}},
		"another key": {
			[]event.Timer{cron}, []listed{{ID: is(cron).ID, Note: note(cron, "k0")}},
			[]change{{update, "signalbox-schedule/shop/orders/cron", cron, note(cron, "k1")}}},
		"unpublished": {
			nil, []listed{is(cron)}, []change{{Kind: remove, ID: "signalbox-schedule/shop/orders/cron"}}},
		"no pause at all": {[]event.Timer{timer("after", event.TimerSpec{})}, nil, nil},
		"after instead": {
			[]event.Timer{after}, []listed{is(after)}, []change{{Kind: remove, ID: "signalbox-schedule/shop/orders/after"}}},
		"of an unknown project": {nil, []listed{{ID: ID("elsewhere", "orders/cron")}}, nil},
		"of another program":    {nil, []listed{{ID: "nightly"}}, nil},
	}
	for name, tt := range tests {
		require.Equal(t, tt.want, plan(tt.timers, tt.existing, "k1", func(p string) bool { return p == "shop" }), name)
	}
}

func TestNoteStatesEverySetting(t *testing.T) {
	t.Parallel()
	plain := timer("w", event.TimerSpec{Cron: "0 3 * * *"})
	require.Equal(t, `workflow orders/w@1.0.0 of project shop: cron "0 3 * * *" (UTC), by signalbox.fires`,
		note(plain, ""))
	set := plain
	set.Spec.Settings = event.TimerSettings{TimeZone: "Europe/Berlin", Overlap: dsl.OverlapSkip,
		Jitter: new(30 * time.Second), CatchUp: new(time.Hour)}
	require.Equal(t, `workflow orders/w@1.0.0 of project shop: cron "0 3 * * *" (Europe/Berlin), overlap: skip, `+
		`jitter up to 30s, caught up within 1h0m0s, by signalbox.fires`, note(set, ""))
}

func TestDesiredSchedule(t *testing.T) {
	t.Parallel()
	every := timer("w", event.TimerSpec{Every: 5 * time.Minute})
	s := desired(change{create, "id", every, "n"})
	require.Equal(t, []client.ScheduleIntervalSpec{{Every: 5 * time.Minute, Offset: 7 * time.Second}}, s.Spec.Intervals,
		"noon is a multiple of five minutes")
	require.Equal(t, &client.SchedulePolicies{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL,
		CatchupWindow: 10 * time.Minute}, s.Policy)
	cron := timer("w", event.TimerSpec{Cron: "0 3 * * 1-7", Settings: event.TimerSettings{TimeZone: "Europe/Berlin",
		Overlap: dsl.OverlapQueueOne, Jitter: new(time.Second), CatchUp: new(time.Hour)}})
	s = desired(change{create, "id", cron, "n"})
	require.Equal(t, &client.ScheduleSpec{CronExpressions: []string{"0 3 * * *"}, TimeZoneName: "Europe/Berlin",
		Jitter: time.Second}, s.Spec)
	require.Equal(t, &client.SchedulePolicies{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE,
		CatchupWindow: time.Hour}, s.Policy)
	action, ok := s.Action.(*client.ScheduleWorkflowAction)
	require.True(t, ok)
	require.Equal(t, []any{Fire{Project: "shop", Workflow: "orders/w", Version: "1.0.0", Cron: "0 3 * * 1-7",
		Zone: "Europe/Berlin", Waits: true}}, action.Args)
	for overlap, want := range map[dsl.Overlap]enumspb.ScheduleOverlapPolicy{
		dsl.OverlapSkip:       enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
		dsl.OverlapCancelOpen: enumspb.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER,
	} {
		require.Equal(t, want, policy(overlap))
	}
}

func TestScheduleIDsAreUnique(t *testing.T) {
	t.Parallel()
	require.NotEqual(t, ID("a-b", "c/d"), ID("a", "b-c/d"))
	require.Equal(t, "a-b", projectOf(ID("a-b", "c/d")))
	require.Empty(t, projectOf("nightly"))
}

// inbox is a fake event service that fails first, and returns the timers of workflows.
type inbox struct {
	failures []error
	events   []event.Event
	timers   map[string]event.Timer
	// openFor is the number of reads for which the run of a fire is open; canceled are the reasons of cancellations.
	openFor  int
	canceled []string
	// reads counts the reads of timers; resume is the number of reads after which a timer is not paused any more.
	reads, resume int
}

func (i *inbox) Timer(_ context.Context, _, workflow string) (event.Timer, bool, error) {
	i.reads++
	t, found := i.timers[workflow]
	t.Paused = t.Paused && i.reads <= i.resume
	return t, found, nil
}

func (i *inbox) FiredRun(context.Context, string, string, int64) (string, bool, error) {
	i.openFor--
	return "r1", i.openFor < 0, nil
}

func (i *inbox) Cancel(_ context.Context, _, id, reason string) error {
	i.openFor = 0
	i.canceled = append(i.canceled, id+": "+reason)
	return nil
}

func (i *inbox) Publish(_ context.Context, project string, events []event.Event) ([]event.Accepted, error) {
	if len(i.failures) > 0 {
		err := i.failures[0]
		i.failures = i.failures[1:]
		return nil, err
	}
	for _, e := range events {
		e.Project = project
		i.events = append(i.events, e)
	}
	accepted := make([]event.Accepted, len(events))
	for n := range accepted {
		accepted[n].Position = int64(len(i.events) + n)
	}
	return accepted, nil
}

func fireOnce(t *testing.T, i *inbox, f Fire) error {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	Register(env, i, i, i)
	env.SetStartTime(noon())
	env.ExecuteWorkflow(fireWorkflow, f)
	require.True(t, env.IsWorkflowCompleted())
	return env.GetWorkflowError()
}

func TestFire(t *testing.T) {
	t.Parallel()
	i := &inbox{failures: []error{
		errors.New("away"), apperror.New(apperror.Unavailable, apperror.StoreUnavailable, "away")}}
	due := noon().Add(-time.Hour)
	require.NoError(t, fireOnce(t, i, Fire{Project: "shop", Workflow: "orders/cron", Version: "1.0.0", At: due}))
	require.Len(t, i.events, 1)
	e := i.events[0]
	require.Equal(t, []string{
		"shop", "2026-03-01T11:00:07Z", "/projects/shop/workflows/orders/cron/schedule", event.ScheduleFired, "orders/cron"},
		[]string{e.Project, e.ID, e.Source, e.Type, e.Subject})
	var data map[string]string
	require.NoError(t, json.Unmarshal(e.Data, &data))
	require.Equal(t, map[string]string{
		"scheduledTime": "2026-03-01T11:00:07Z", "workflow": "orders/cron", "version": "1.0.0"}, data)
}

// Several runs that are followed after less than a second may end within one second. Each has its own fire, which is a
// duplicate when it is retried.
func TestFiresWithinOneSecond(t *testing.T) {
	t.Parallel()
	i := &inbox{timers: map[string]event.Timer{"orders/w": timer("w", event.TimerSpec{After: time.Millisecond})}}
	for _, run := range []string{"r1", "r2", "r2"} {
		require.NoError(t, fireOnce(t, i,
			Fire{Project: "shop", Workflow: "orders/w", Version: "1.0.0", At: noon().Add(time.Millisecond), Run: run}))
	}
	var ids []string
	for _, e := range i.events {
		ids = append(ids, e.ID)
		require.JSONEq(t, `{"scheduledTime":"2026-03-01T12:00:07Z","workflow":"orders/w","version":"1.0.0"}`, string(e.Data))
	}
	require.Equal(t, []string{"2026-03-01T12:00:07Z/r1", "2026-03-01T12:00:07Z/r2", "2026-03-01T12:00:07Z/r2"}, ids)
}

// Around the end of daylight saving time Temporal fires at times that the expression does not have.
func TestFireAtATimeThatDoesNotMatchHasNoEffect(t *testing.T) {
	t.Parallel()
	i := &inbox{}
	f := Fire{Project: "shop", Workflow: "orders/w", Version: "1.0.0", Cron: "30 1 * * *", Zone: "Europe/Berlin", Waits: true,
		At: time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC)}
	require.NoError(t, fireOnce(t, i, f))
	require.Empty(t, i.events, "it is 2:30 in Berlin")
	f.At = f.At.Add(-time.Hour)
	require.NoError(t, fireOnce(t, i, f))
	require.Len(t, i.events, 1)
}

func TestFireWaitsForTheEndOfItsRun(t *testing.T) {
	t.Parallel()
	i := &inbox{openFor: 5}
	f := Fire{Project: "shop", Workflow: "orders/w", Version: "1.0.0", At: noon(), Waits: true}
	require.NoError(t, fireOnce(t, i, f))
	require.Equal(t, -1, i.openFor, "it was open five times")
	i = &inbox{openFor: 5}
	f.Waits = false
	require.NoError(t, fireOnce(t, i, f))
	require.Equal(t, 5, i.openFor, "it did not wait")
}

func TestCanceledFireCancelsItsRun(t *testing.T) {
	t.Parallel()
	i := &inbox{openFor: 1000}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	Register(env, i, i, i)
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Minute)
	env.ExecuteWorkflow(fireWorkflow, Fire{Project: "shop", Workflow: "orders/w", Version: "1.0.0", At: noon(), Waits: true})
	var canceled *temporal.CanceledError
	require.ErrorAs(t, env.GetWorkflowError(), &canceled)
	require.Len(t, i.events, 1)
	require.Equal(t, []string{"r1: the schedule fired again, and its overlap is to cancel the open run"}, i.canceled)
	require.Negative(t, i.openFor, "it waited for the end of the run")
}

func TestFireOfADeletedProject(t *testing.T) {
	t.Parallel()
	err := fireOnce(t, &inbox{failures: []error{
		apperror.New(apperror.NotFound, apperror.ProjectNotFound, "no project %q", "shop")}},
		Fire{Project: "shop", At: noon()})
	var failure *temporal.ApplicationError
	require.ErrorAs(t, err, &failure)
	require.Equal(t, apperror.ProjectNotFound, failure.Type())
}

func TestFireAfterARun(t *testing.T) {
	t.Parallel()
	after, every := timer("w", event.TimerSpec{After: time.Minute}), timer("w", event.TimerSpec{Every: time.Hour})
	paused := after
	paused.Paused = true
	for name, tt := range map[string]struct {
		timers map[string]event.Timer
		resume int
		events int
		reads  int
	}{
		"as it was":        {map[string]event.Timer{"orders/w": after}, 0, 1, 1},
		"without a pause":  {map[string]event.Timer{"orders/w": timer("w", event.TimerSpec{})}, 0, 1, 1},
		"paused meanwhile": {map[string]event.Timer{"orders/w": paused}, 3, 1, 4},
		"deleted":          {nil, 0, 0, 1},
		"on another timer": {map[string]event.Timer{"orders/w": every}, 0, 0, 1},
	} {
		i := &inbox{timers: tt.timers, resume: tt.resume}
		require.NoError(t, fireOnce(t, i, Fire{Project: "shop", Workflow: "orders/w", Version: "1.0.0", At: noon(), Run: "r1"}),
			name)
		require.Len(t, i.events, tt.events, name)
		require.Equal(t, tt.reads, i.reads, name)
	}
}

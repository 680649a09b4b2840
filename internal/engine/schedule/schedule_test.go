package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

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

func TestPhaseAlignsIntervalsWithThePublication(t *testing.T) {
	t.Parallel()
	every := timer("every", event.TimerSpec{Every: 5 * time.Minute})
	require.Equal(t, 7*time.Second, phase(every), "noon is a multiple of five minutes")
	require.Equal(t, int64(phase(every)), noon().Add(time.Hour).UnixNano()%int64(5*time.Minute))
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
	// reads counts the reads of timers; resume is the number of reads after which a timer is not paused any more.
	reads, resume int
}

func (i *inbox) Timer(_ context.Context, _, workflow string) (event.Timer, bool, error) {
	i.reads++
	t, found := i.timers[workflow]
	t.Paused = t.Paused && i.reads <= i.resume
	return t, found, nil
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
	return make([]event.Accepted, len(events)), nil
}

func fired(t *testing.T, i *inbox, f Fire) error {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	Register(env, i, i)
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
	require.NoError(t, fired(t, i, Fire{Project: "shop", Workflow: "orders/cron", Version: "1.0.0", At: due}))
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
		require.NoError(t, fired(t, i,
			Fire{Project: "shop", Workflow: "orders/w", Version: "1.0.0", At: noon().Add(time.Millisecond), Run: run}))
	}
	var ids []string
	for _, e := range i.events {
		ids = append(ids, e.ID)
		require.JSONEq(t, `{"scheduledTime":"2026-03-01T12:00:07Z","workflow":"orders/w","version":"1.0.0"}`, string(e.Data))
	}
	require.Equal(t, []string{"2026-03-01T12:00:07Z/r1", "2026-03-01T12:00:07Z/r2", "2026-03-01T12:00:07Z/r2"}, ids)
}

func TestFireOfADeletedProject(t *testing.T) {
	t.Parallel()
	err := fired(t, &inbox{failures: []error{
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
		require.NoError(t, fired(t, i, Fire{Project: "shop", Workflow: "orders/w", Version: "1.0.0", At: noon(), Run: "r1"}),
			name)
		require.Len(t, i.events, tt.events, name)
		require.Equal(t, tt.reads, i.reads, name)
	}
}

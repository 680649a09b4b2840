package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run"
)

func TestWakeAnswers(t *testing.T) {
	t.Parallel()
	missing := serviceerror.NewNotFound("workflow execution already completed")
	tests := []struct {
		name   string
		answer error
		known  bool
		want   error
		class  apperror.Class
		reason string
	}{
		{"taken", nil, true, nil, 0, ""},
		{"never known", missing, false, run.ErrNotKnown, 0, ""},
		{"ended", missing, true, run.ErrClosed, 0, ""},
		{"too large", serviceerror.NewInvalidArgument("blob too large"), true, nil, apperror.Refused, apperror.EngineRefused},
		{
			"as many as one execution takes", serviceerror.NewInvalidArgument(
				"exceeded workflow execution limit for signal events"), true, nil,
			apperror.Unavailable, apperror.EngineUnavailable,
		},
		{"denied", serviceerror.NewPermissionDenied("no", ""), true, nil, apperror.Unavailable, apperror.EngineUnavailable},
		{"away", serviceerror.NewUnavailable("cut"), true, nil, apperror.Unavailable, apperror.EngineUnavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := serve(t)
			var got flow.Wake
			f.signal = func(r *workflowservice.SignalWorkflowExecutionRequest) error {
				if err := codec.Converter(testKeys(t)).FromPayloads(r.GetInput(), &got); err != nil ||
					r.GetWorkflowExecution().GetRunId() != "" {
					return serviceerror.NewInternal("wrong request")
				}
				return tt.answer
			}
			if tt.known {
				f.info["r1"] = &workflowpb.WorkflowExecutionInfo{Status: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED}
			}
			e, _ := connect(t, f.address, nil)
			ctx, stop := context.WithTimeout(t.Context(), patience(tt.name == "away"))
			defer stop()
			err := e.Wake(ctx, "r1",
				event.WakeEvent{Listener: "l1", Position: 7, JSON: json.RawMessage(`{"id":"1"}`)},
				event.WakeEvent{Listener: "l1", Position: 8, JSON: json.RawMessage(`{"id":"2"}`), Sensitive: []string{"s"}})
			require.Equal(t, "signal r1 signalbox.event", f.called()[0])
			require.Equal(t, flow.Wake{
				Listener: "l1", Position: 7, Event: json.RawMessage(`{"id":"1"}`),
				More: []flow.Wake{{Listener: "l1", Position: 8, Event: json.RawMessage(`{"id":"2"}`), Sensitive: []string{"s"}}},
			}, got)
			switch {
			case tt.want != nil:
				require.ErrorIs(t, err, tt.want)
			case tt.class != 0:
				requireError(t, err, tt.class, tt.reason, "the event for run r1")
			default:
				require.NoError(t, err)
			}
		})
	}
}

func TestWakeWithoutTemporal(t *testing.T) {
	t.Parallel()
	e, _, _ := reach(t, "127.0.0.1:1", nil)
	requireError(t, e.Wake(t.Context(), "r1", event.WakeEvent{Listener: "l1", Position: 7}), apperror.Unavailable,
		apperror.EngineUnavailable, "127.0.0.1:1")
}

// inbox is a fake event service.
type inbox struct {
	err       error
	listeners []event.Listener
	left      []string
	events    []event.Event
	actor     auth.Actor
}

func (i *inbox) Listen(_ context.Context, l event.Listener) error {
	i.listeners = append(i.listeners, l)
	return i.err
}

func (i *inbox) Unlisten(_ context.Context, project, id string) error {
	i.left = append(i.left, project+" "+id)
	return i.err
}

func (i *inbox) Publish(ctx context.Context, project string, events []event.Event) ([]event.Accepted, error) {
	for _, e := range events {
		e.Project = project
		i.events = append(i.events, e)
	}
	i.actor, _ = auth.ActorFrom(ctx)
	return make([]event.Accepted, len(events)), i.err
}

// perform executes an event activity as a worker does.
func perform(t *testing.T, i *inbox, name string, request any) error {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	engine.RegisterEvents(env, i)
	_, err := env.ExecuteActivity(name, request)
	return err
}

func TestEventActivities(t *testing.T) {
	t.Parallel()
	i := &inbox{}
	filters := []eventfilter.Filter{{With: map[string]eventfilter.Value{"type": {Literal: []byte(`"paid"`)}}}}
	require.NoError(t, perform(t, i, flow.ListenActivity, flow.ListenRequest{
		Project: "team-7", RunID: "r1", Listener: "l1", Spec: eventfilter.Spec{Mode: eventfilter.One, Filters: filters},
	}))
	require.Equal(t, []event.Listener{
		{ID: "l1", Project: "team-7", RunID: "r1", Spec: event.Spec{Mode: event.One, Filters: filters}},
	}, i.listeners)
	require.NoError(t, perform(t, i, flow.UnlistenActivity, flow.UnlistenRequest{Project: "team-7", Listener: "l1"}))
	require.Equal(t, []string{"team-7 l1"}, i.left)
	require.NoError(t, perform(t, i, flow.EmitActivity, flow.EmitRequest{
		Project: "team-7", RunID: "r1",
		Event: json.RawMessage(`{"specversion":"1.0","id":"1","source":"/s","type":"told","time":"2026-03-01T12:00:00Z","datacontenttype":"application/json","room":5,"data":{"n":1}}`),
	}))
	require.Len(t, i.events, 1)
	e := i.events[0]
	require.Equal(t, []string{"team-7", "1", "/s", "told", `{"room":5}`, `{"n":1}`},
		[]string{e.Project, e.ID, e.Source, e.Type, string(e.Extensions), string(e.Data)})
	require.Equal(t, auth.Actor{Kind: auth.KindSystem, Name: "run r1"}, i.actor)
}

func TestPermanentRejectionsAreErrorsOfTheRun(t *testing.T) {
	t.Parallel()
	away := errors.New("the database is away")
	for name, tt := range map[string]struct {
		err    error
		kind   string // empty: retried
		status int
	}{
		"invalid": {apperror.New(apperror.Invalid, apperror.EventInvalid, "no CloudEvent"), dsl.ErrorTypeValidation,
			400},
		"too large": {apperror.New(apperror.Exhausted, apperror.EventTooLarge, "too large"), dsl.ErrorTypeValidation,
			413},
		"no project": {apperror.New(apperror.NotFound, apperror.ProjectNotFound, "no project"), dsl.ErrorTypeConfiguration,
			404},
		"away":          {away, "", 0},
		"store is away": {apperror.New(apperror.Unavailable, apperror.StoreUnavailable, "away"), "", 0},
		"too many":      {apperror.New(apperror.Exhausted, apperror.QueueFull, "full"), "", 0},
		"run has ended": {apperror.New(apperror.Refused, apperror.RunEnded, "ended"), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := &inbox{err: tt.err}
			emit := flow.EmitRequest{
				Project: "p", Event: json.RawMessage(`{"specversion":"1.0","id":"1","source":"/s","type":"t"}`)}
			for activity, request := range map[string]any{
				flow.ListenActivity: flow.ListenRequest{}, flow.UnlistenActivity: flow.UnlistenRequest{}, flow.EmitActivity: emit,
			} {
				err := perform(t, i, activity, request)
				var app *temporal.ApplicationError
				require.ErrorAs(t, err, &app)
				require.Equal(t, tt.kind != "", app.NonRetryable(), activity)
				if tt.kind == "" {
					continue
				}
				var failure flow.CallFailure
				require.NoError(t, app.Details(&failure))
				require.Equal(t, []any{tt.kind, tt.status, tt.err.Error(), flow.CategoryRefused},
					[]any{failure.Error.Type, failure.Error.Status, failure.Error.Detail, failure.Category})
			}
		})
	}
	err := perform(t, &inbox{}, flow.EmitActivity,
		flow.EmitRequest{Event: json.RawMessage(`{"specversion":"1.0","id":"1","type":"t"}`)})
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.True(t, app.NonRetryable())
	require.Equal(t, dsl.ErrorTypeValidation, app.Type())
}

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/child"
)

// childFrontend is a fake Temporal in which a run has ended with output, or err. It records the signals that it
// receives.
type childFrontend struct {
	client.Client
	client.WorkflowRun

	output string
	err    error
	reads  int
	// answers are the errors that signals return, in order. Later signals succeed.
	answers []error
	sent    []flow.ChildEnded
	to      []string
}

func (f *childFrontend) GetWorkflow(context.Context, string, string) client.WorkflowRun {
	f.reads++
	return f
}

func (f *childFrontend) Get(_ context.Context, into any) error {
	if f.err == nil {
		reflect.ValueOf(into).Elem().SetBytes([]byte(f.output))
	}
	return f.err
}

func (f *childFrontend) GetID() string { return "" }

func (f *childFrontend) SignalWorkflow(_ context.Context, workflowID, _, signal string, arg any) error {
	f.sent, f.to = append(f.sent, arg.(flow.ChildEnded)), append(f.to, workflowID+" "+signal)
	if len(f.answers) == 0 {
		return nil
	}
	answer := f.answers[0]
	f.answers = f.answers[1:]
	return answer
}

func (f *childFrontend) notifier() *notifier {
	return newNotifier(notifierOptions{
		Client: func() (client.Client, error) { return f, nil }, Address: "here:7233", SignalLimit: "exceeded the limit",
		Absent: func(context.Context, string) error { return run.ErrClosed },
	})
}

func endedChild(status run.Status) run.Run {
	return run.Run{ID: "child", Status: status, Output: json.RawMessage(`"as the row has it"`),
		Parent: run.Parent{RunID: "parent", Key: "k"}}
}

func failedWith(details ...any) error {
	return errors.Join(&temporal.WorkflowExecutionError{}, temporal.NewApplicationError("failed", "", details...))
}

// sealedFailure returns the error of a failure with details that are sealed with an unavailable key.
func sealedFailure(t *testing.T) error {
	t.Helper()
	payloads, err := codec.Converter(keyring.Random("gone")).ToPayloads(dsl.Error{Type: "x"}, interp.StatusFailed)
	require.NoError(t, err)
	return failedWith(client.NewValues(payloads)) // a stand-in for details that the client decodes
}

func unopenedFailure(t *testing.T) error {
	t.Helper()
	payloads, err := codec.Converter(keyring.Random("gone")).ToPayloads("out")
	require.NoError(t, err)
	var out string
	err = codec.Converter(keyring.Random("new")).FromPayloads(payloads, &out)
	require.Error(t, err)
	return err
}

func TestParentIsNotifiedOnlyOfResults(t *testing.T) {
	t.Parallel()
	shown := &run.Error{Type: dsl.ErrorTypeRuntime, Title: "as the row has it"}
	runError := dsl.Error{Type: dsl.ErrorTypeCommunication, Status: 503, Title: "the child's own"}
	for name, tt := range map[string]struct {
		err  error
		want *dsl.Error
	}{
		"failed":               {failedWith(runError, interp.StatusFailed), &runError},
		"no answer":            {serviceerror.NewUnavailable("connection refused"), nil},
		"an answer cut short":  {errors.New("stream terminated by RST_STREAM"), nil},
		"nobody may read that": {serviceerror.NewPermissionDenied("no", ""), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &childFrontend{err: tt.err}
			r := endedChild(run.Failed)
			r.Error = shown
			err := f.notifier().NotifyParent(t.Context(), r, false)
			if tt.want == nil {
				require.True(t, apperror.Is(err, apperror.EngineUnavailable), "%v", err)
				require.Empty(t, f.sent, "the parent is notified later")
				return
			}
			require.NoError(t, err)
			require.Equal(t, []string{contract.WorkflowID("parent") + " " + contract.ChildSignal}, f.to)
			require.Equal(t, tt.want, f.sent[0].Error)
		})
	}
}

func TestResultsAreThoseOfTemporal(t *testing.T) {
	t.Parallel()
	runError := dsl.Error{Type: dsl.ErrorTypeTimeout, Status: 408, Title: "too slow"}
	result := func(status string, output string, runError *dsl.Error) flow.ChildEnded {
		e := flow.ChildEnded{Key: "k", RunID: "child", Status: status, Error: runError}
		if output != "" {
			e.Output = json.RawMessage(output)
		}
		return e
	}
	unexpected := &dsl.Error{
		Type: dsl.ErrorTypeRuntime, Status: 500, Title: "The run ended unexpectedly", Instance: "/",
		Detail: (&temporal.WorkflowExecutionError{}).Error(),
	}
	for name, tt := range map[string]struct {
		row  run.Status
		f    childFrontend
		want flow.ChildEnded
	}{
		"completed":          {run.Completed, childFrontend{output: `{"n":1}`}, result("completed", `{"n":1}`, nil)},
		"its row has failed": {run.Failed, childFrontend{output: `1`}, result("completed", `1`, nil)},
		"timed out": {
			run.TimedOut, childFrontend{err: failedWith(runError, interp.StatusTimedOut)}, result("timed_out", "", &runError)},
		"not known any more": {
			run.Completed, childFrontend{err: serviceerror.NewNotFound("gone")},
			result("completed", `"as the row has it"`, nil)},
		"reset, and failed since": {
			run.Completed, childFrontend{err: failedWith(runError, interp.StatusFailed)}, result("failed", "", &runError)},
		"reset, and canceled since": {
			run.Completed, childFrontend{err: errors.Join(&temporal.WorkflowExecutionError{}, temporal.NewCanceledError())},
			result("canceled", "", nil)},
		"reset, and ended since": {
			run.Completed, childFrontend{err: &temporal.WorkflowExecutionError{}}, result("failed", "", unexpected)},
		"canceled":   {run.Canceled, childFrontend{err: errors.New("not read")}, result("canceled", "", nil)},
		"terminated": {run.Terminated, childFrontend{err: errors.New("not read")}, result("terminated", "", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, tt.f.notifier().NotifyParent(t.Context(), endedChild(tt.row), false))
			require.Equal(t, []flow.ChildEnded{tt.want}, tt.f.sent)
		})
	}
}

func TestUnreadableResult(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]*childFrontend{
		"sealed with a key that is gone": {err: unopenedFailure(t)},
		"no text that can be decoded": {
			err: fmt.Errorf("payload item 0: %w: invalid character", converter.ErrUnableToDecode)},
		"a failure that is sealed": {err: sealedFailure(t)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := f.notifier().NotifyParent(t.Context(), endedChild(run.Failed), false)
			require.ErrorIs(t, err, child.ErrUnreadable)
			require.Empty(t, f.sent, "the key may be restored")
			require.Equal(t, 1, f.reads)

			require.NoError(t, f.notifier().NotifyUnreadable(t.Context(), endedChild(run.Failed), err))
			require.Equal(t, 1, f.reads, "the result is not read again")
			require.Equal(t, []flow.ChildEnded{{
				Key: "k", RunID: "child", Status: "failed",
				Error: &dsl.Error{Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Result unreadable", Detail: err.Error()},
			}}, f.sent)
		})
	}
}

func TestSignalsThatTemporalRejects(t *testing.T) {
	t.Parallel()
	invalid := serviceerror.NewInvalidArgument("BadSignalInput: too large")
	for name, tt := range map[string]struct {
		answers []error
		sent    int
		check   func(*testing.T, error)
	}{
		"never": {[]error{invalid}, 2, func(t *testing.T, err error) { t.Helper(); require.NoError(t, err) }},
		"rejected by this execution": {
			[]error{serviceerror.NewInvalidArgument("exceeded the limit of signals")}, 1, func(t *testing.T, err error) {
				t.Helper()
				require.True(t, apperror.Is(err, apperror.EngineUnavailable), "%v", err)
			}},
		"not now": {[]error{serviceerror.NewUnavailable("busy")}, 1, func(t *testing.T, err error) {
			t.Helper()
			require.True(t, apperror.Is(err, apperror.EngineUnavailable), "%v", err)
			require.ErrorContains(t, err, "temporal did not accept the result of run child for run parent")
		}},
		"the parent is gone": {[]error{serviceerror.NewNotFound("gone")}, 1, func(t *testing.T, err error) {
			t.Helper()
			require.ErrorIs(t, err, run.ErrClosed)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &childFrontend{output: `1`, answers: tt.answers}
			tt.check(t, f.notifier().NotifyParent(t.Context(), endedChild(run.Completed), false))
			require.Len(t, f.sent, tt.sent)
			if tt.sent == 2 {
				require.Equal(t, "failed", f.sent[1].Status)
				require.Nil(t, f.sent[1].Output)
				require.Contains(t, f.sent[1].Error.Detail, "BadSignalInput")
			}
		})
	}
}

func TestNotificationWithoutAConnection(t *testing.T) {
	t.Parallel()
	away := apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "down")
	notifier := newNotifier(notifierOptions{Client: func() (client.Client, error) { return nil, away }})
	require.ErrorIs(t, notifier.NotifyParent(t.Context(), endedChild(run.Completed), false), away)
	require.ErrorIs(t, notifier.NotifyUnreadable(t.Context(), endedChild(run.Completed), child.ErrUnreadable), away)
}

func TestParentIsNotifiedOfItsOwnCancellation(t *testing.T) {
	t.Parallel()
	f := &childFrontend{}
	require.NoError(t, f.notifier().NotifyParent(t.Context(), endedChild(run.Canceled), true))
	require.Equal(t, []flow.ChildEnded{{Key: "k", RunID: "child", Status: "canceled", ParentCanceled: true}}, f.sent)
}

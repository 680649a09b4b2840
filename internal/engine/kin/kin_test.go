package kin_test

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
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/kin"
	"github.com/signalbox-dev/signalbox/internal/engine/payload"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/child"
	"github.com/signalbox-dev/signalbox/internal/seal"
)

// frontend is a Temporal in which a run has ended with output, or err, and that keeps what it is told.
type frontend struct {
	client.Client
	client.WorkflowRun

	output string
	err    error
	asked  int
	// answers are what signals get, in turn, and nothing after them.
	answers []error
	told    []flow.ChildEnded
	to      []string
}

func (f *frontend) GetWorkflow(context.Context, string, string) client.WorkflowRun {
	f.asked++
	return f
}

func (f *frontend) Get(_ context.Context, into any) error {
	if f.err == nil {
		reflect.ValueOf(into).Elem().SetBytes([]byte(f.output))
	}
	return f.err
}

func (f *frontend) GetID() string { return "" }

func (f *frontend) SignalWorkflow(_ context.Context, workflowID, _, signal string, arg any) error {
	f.told, f.to = append(f.told, arg.(flow.ChildEnded)), append(f.to, workflowID+" "+signal)
	if len(f.answers) == 0 {
		return nil
	}
	answer := f.answers[0]
	f.answers = f.answers[1:]
	return answer
}

func (f *frontend) teller() *kin.Teller {
	return kin.New(kin.Options{
		Client: func() (client.Client, error) { return f, nil }, Address: "here:7233", SignalLimit: "exceeded the limit",
		Absent: func(context.Context, string) error { return run.ErrClosed },
	})
}

func ended(status run.Status) run.Run {
	return run.Run{ID: "child", Status: status, Output: json.RawMessage(`"as the row has it"`), Parent: run.Parent{RunID: "parent", Key: "k"}}
}

func failed(details ...any) error {
	return errors.Join(&temporal.WorkflowExecutionError{}, temporal.NewApplicationError("failed", "", details...))
}

// sealed are the details of a failure as they are read without the key that they were sealed with.
func sealed(t *testing.T) error {
	t.Helper()
	payloads, err := payload.Converter(seal.Random("gone")).ToPayloads(dsl.Error{Type: "x"}, interp.StatusFailed)
	require.NoError(t, err)
	return failed(client.NewValues(payloads)) // a stand-in for details that the client decodes
}

func unopened(t *testing.T) error {
	t.Helper()
	payloads, err := payload.Converter(seal.Random("gone")).ToPayloads("out")
	require.NoError(t, err)
	var out string
	err = payload.Converter(seal.Random("new")).FromPayloads(payloads, &out)
	require.Error(t, err)
	return err
}

func TestAParentIsToldOfTheEndAlone(t *testing.T) {
	t.Parallel()
	shown := &run.Problem{Type: dsl.ErrorTypeRuntime, Title: "as the row has it"}
	problem := dsl.Error{Type: dsl.ErrorTypeCommunication, Status: 503, Title: "the child's own"}
	for name, tt := range map[string]struct {
		err  error
		want *dsl.Error
	}{
		"failed":               {failed(problem, interp.StatusFailed), &problem},
		"no answer":            {serviceerror.NewUnavailable("connection refused"), nil},
		"an answer cut short":  {errors.New("stream terminated by RST_STREAM"), nil},
		"nobody may read that": {serviceerror.NewPermissionDenied("no", ""), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &frontend{err: tt.err}
			r := ended(run.Failed)
			r.Error = shown
			err := f.teller().TellParent(t.Context(), r)
			if tt.want == nil {
				require.True(t, fault.Is(err, fault.EngineUnavailable), "%v", err)
				require.Empty(t, f.told, "it is told later")
				return
			}
			require.NoError(t, err)
			require.Equal(t, []string{contract.WorkflowID("parent") + " " + contract.ChildSignal}, f.to)
			require.Equal(t, tt.want, f.told[0].Error)
		})
	}
}

func TestEndsAreTemporals(t *testing.T) {
	t.Parallel()
	problem := dsl.Error{Type: dsl.ErrorTypeTimeout, Status: 408, Title: "too slow"}
	told := func(status string, output string, problem *dsl.Error) flow.ChildEnded {
		e := flow.ChildEnded{Key: "k", RunID: "child", Status: status, Error: problem}
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
		f    frontend
		want flow.ChildEnded
	}{
		"completed":                 {run.Completed, frontend{output: `{"n":1}`}, told("completed", `{"n":1}`, nil)},
		"its row has failed":        {run.Failed, frontend{output: `1`}, told("completed", `1`, nil)},
		"timed out":                 {run.TimedOut, frontend{err: failed(problem, interp.StatusTimedOut)}, told("timed_out", "", &problem)},
		"not known any more":        {run.Completed, frontend{err: serviceerror.NewNotFound("gone")}, told("completed", `"as the row has it"`, nil)},
		"reset, and failed since":   {run.Completed, frontend{err: failed(problem, interp.StatusFailed)}, told("failed", "", &problem)},
		"reset, and canceled since": {run.Completed, frontend{err: errors.Join(&temporal.WorkflowExecutionError{}, temporal.NewCanceledError())}, told("canceled", "", nil)},
		"reset, and ended since":    {run.Completed, frontend{err: &temporal.WorkflowExecutionError{}}, told("failed", "", unexpected)},
		"canceled":                  {run.Canceled, frontend{err: errors.New("not asked")}, told("canceled", "", nil)},
		"terminated":                {run.Terminated, frontend{err: errors.New("not asked")}, told("terminated", "", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, tt.f.teller().TellParent(t.Context(), ended(tt.row)))
			require.Equal(t, []flow.ChildEnded{tt.want}, tt.f.told)
		})
	}
}

func TestEndThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]*frontend{
		"sealed with a key that is gone": {err: unopened(t)},
		"no text that can be decoded":    {err: fmt.Errorf("payload item 0: %w: invalid character", converter.ErrUnableToDecode)},
		"a failure that is sealed":       {err: sealed(t)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := f.teller().TellParent(t.Context(), ended(run.Failed))
			require.ErrorIs(t, err, child.ErrUnreadable)
			require.Empty(t, f.told, "the key may be put back")
			require.Equal(t, 1, f.asked)

			require.NoError(t, f.teller().TellUnreadable(t.Context(), ended(run.Failed), err))
			require.Equal(t, 1, f.asked, "it is not asked for again")
			require.Equal(t, []flow.ChildEnded{{
				Key: "k", RunID: "child", Status: "failed",
				Error: &dsl.Error{Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Result unreadable", Detail: err.Error()},
			}}, f.told)
		})
	}
}

func TestSignalsThatTemporalDoesNotTake(t *testing.T) {
	t.Parallel()
	invalid := serviceerror.NewInvalidArgument("BadSignalInput: too large")
	for name, tt := range map[string]struct {
		answers []error
		told    int
		check   func(*testing.T, error)
	}{
		"never": {[]error{invalid}, 2, func(t *testing.T, err error) { t.Helper(); require.NoError(t, err) }},
		"not by this execution": {[]error{serviceerror.NewInvalidArgument("exceeded the limit of signals")}, 1, func(t *testing.T, err error) {
			t.Helper()
			require.True(t, fault.Is(err, fault.EngineUnavailable), "%v", err)
		}},
		"not now": {[]error{serviceerror.NewUnavailable("busy")}, 1, func(t *testing.T, err error) {
			t.Helper()
			require.True(t, fault.Is(err, fault.EngineUnavailable), "%v", err)
			require.ErrorContains(t, err, "temporal at here:7233 did not take the end of run child for run parent")
		}},
		"the parent is gone": {[]error{serviceerror.NewNotFound("gone")}, 1, func(t *testing.T, err error) { t.Helper(); require.ErrorIs(t, err, run.ErrClosed) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &frontend{output: `1`, answers: tt.answers}
			tt.check(t, f.teller().TellParent(t.Context(), ended(run.Completed)))
			require.Len(t, f.told, tt.told)
			if tt.told == 2 {
				require.Equal(t, "failed", f.told[1].Status)
				require.Nil(t, f.told[1].Output)
				require.Contains(t, f.told[1].Error.Detail, "BadSignalInput")
			}
		})
	}
}

func TestWithoutTemporalNobodyIsTold(t *testing.T) {
	t.Parallel()
	away := fault.New(fault.Unavailable, fault.EngineUnavailable, "down")
	teller := kin.New(kin.Options{Client: func() (client.Client, error) { return nil, away }})
	require.ErrorIs(t, teller.TellParent(t.Context(), ended(run.Completed)), away)
	require.ErrorIs(t, teller.TellUnreadable(t.Context(), ended(run.Completed), child.ErrUnreadable), away)
}

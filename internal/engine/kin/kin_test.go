package kin_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/kin"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// frontend is a Temporal in which a run has ended with err, and that keeps what it is told.
type frontend struct {
	client.Client
	client.WorkflowRun

	err  error
	told []flow.ChildEnded
}

func (f *frontend) GetWorkflow(context.Context, string, string) client.WorkflowRun { return f }

func (f *frontend) Get(context.Context, any) error { return f.err }

func (f *frontend) GetID() string { return "" }

func (f *frontend) SignalWorkflow(_ context.Context, _, _, _ string, arg any) error {
	f.told = append(f.told, arg.(flow.ChildEnded))
	return nil
}

func TestAParentIsToldOfTheEndAlone(t *testing.T) {
	t.Parallel()
	shown := &run.Problem{Type: dsl.ErrorTypeRuntime, Title: "as the row has it"}
	problem := dsl.Error{Type: dsl.ErrorTypeCommunication, Status: 503, Title: "the child's own"}
	own := errors.Join(&temporal.WorkflowExecutionError{}, temporal.NewApplicationError("failed", "", problem, interp.StatusFailed))
	for name, tt := range map[string]struct {
		err  error
		want *dsl.Error
	}{
		"failed":               {own, &problem},
		"no answer":            {serviceerror.NewUnavailable("connection refused"), nil},
		"an answer cut short":  {errors.New("stream terminated by RST_STREAM"), nil},
		"nobody may read that": {serviceerror.NewPermissionDenied("no", ""), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &frontend{err: tt.err}
			teller := kin.New(kin.Options{Client: func() (client.Client, error) { return f, nil }, Address: "here:7233", SignalLimit: "limit"})
			err := teller.TellParent(t.Context(), run.Run{
				ID: "child", Status: run.Failed, Error: shown, Output: json.RawMessage("null"), Parent: run.Parent{RunID: "parent", Key: "k"},
			})
			if tt.want == nil {
				require.True(t, fault.Is(err, fault.EngineUnavailable), "%v", err)
				require.Empty(t, f.told, "it is told later")
				return
			}
			require.NoError(t, err)
			require.Len(t, f.told, 1)
			require.Equal(t, tt.want, f.told[0].Error)
		})
	}
}

package function

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
)

// execute executes a function of a set in the SDK's test environment.
func execute(t *testing.T, set *Set, r flow.FunctionRequest) (string, error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	e := &executor{set: set, log: slog.New(slog.DiscardHandler)}
	env.RegisterActivityWithOptions(e.run, activity.RegisterOptions{Name: flow.FunctionActivity})
	if r.Timeout == 0 {
		r.Timeout = time.Minute
	}
	value, err := env.ExecuteActivity(flow.FunctionActivity, r)
	if err != nil {
		return "", err
	}
	var result flow.FunctionResult
	require.NoError(t, value.Get(&result))
	return string(result.Output), nil
}

// requireFailure requires that an error is that of a task, and returns it.
func requireFailure(t *testing.T, err error) dsl.Error {
	t.Helper()
	app, is := errors.AsType[*temporal.ApplicationError](err)
	require.True(t, is, "%v", err)
	require.True(t, app.NonRetryable())
	var failure flow.CallFailure
	require.NoError(t, app.Details(&failure))
	return failure.Error
}

type numbers struct {
	A int `json:"a"`
	B int `json:"b"`
}

func newSet(t *testing.T, call func(ctx context.Context, n numbers) (any, error)) *Set {
	t.Helper()
	set, err := NewSet("calculator", New("f", "1.0.0", call))
	require.NoError(t, err)
	return set
}

func request(input string) flow.FunctionRequest {
	return flow.FunctionRequest{Project: "shop", RunID: "run-1", Key: "key-1", Function: "f", Version: "1.0.0",
		Input: json.RawMessage(input)}
}

func TestFunctionGetsItsInputAndItsCall(t *testing.T) {
	t.Parallel()
	set := newSet(t, func(ctx context.Context, n numbers) (any, error) {
		return map[string]any{"sum": n.A + n.B, "key": CallOf(ctx).Key, "run": CallOf(ctx).RunID}, nil
	})
	output, err := execute(t, set, request(`{"a": 1, "b": 2}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"sum": 3, "key": "key-1", "run": "run-1"}`, output)
}

func TestErrorsOfFunctions(t *testing.T) {
	t.Parallel()
	notSold := &dsl.Error{Type: "https://example.com/not-sold", Status: 404, Title: "Not sold", Detail: "no pens"}
	for name, c := range map[string]struct {
		input string
		call  func(ctx context.Context, n numbers) (any, error)
		want  dsl.Error
	}{
		"standard": {`{"a":1,"b":2}`, func(context.Context, numbers) (any, error) {
			return nil, fmt.Errorf("price it: %w", notSold)
		}, *notSold},
		"other": {`{"a":1,"b":2}`, func(context.Context, numbers) (any, error) { return nil, errors.New("disk full") },
			dsl.Error{Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Function failed", Detail: "disk full"}},
		"panic": {`{"a":1,"b":2}`, func(context.Context, numbers) (any, error) { panic("index out of range") },
			dsl.Error{Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Function failed", Detail: "panic: index out of range"}},
		"input": {`{"a":"x"}`, func(context.Context, numbers) (any, error) { panic("called") },
			dsl.Error{Type: dsl.ErrorTypeValidation, Status: 400, Title: "Input not valid"}},
		"output": {`{"a":1,"b":2}`, func(context.Context, numbers) (any, error) { return func() {}, nil },
			dsl.Error{Type: dsl.ErrorTypeValidation, Status: 400, Title: "Output not valid"}},
		"large": {`{"a":1,"b":2}`, func(context.Context, numbers) (any, error) { return strings.Repeat("x", 1<<20), nil },
			dsl.Error{Type: dsl.ErrorTypeValidation, Status: 413, Title: "Value too large"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := execute(t, newSet(t, c.call), request(c.input))
			got := requireFailure(t, err)
			if c.want.Detail == "" {
				require.Contains(t, got.Detail, "f:1.0.0")
				got.Detail = ""
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestFunctionEndsAtItsTimeout(t *testing.T) {
	t.Parallel()
	set := newSet(t, func(ctx context.Context, _ numbers) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	r := request(`{"a":1,"b":2}`)
	r.Timeout = time.Millisecond
	_, err := execute(t, set, r)
	require.Equal(t, dsl.ErrorTypeTimeout, requireFailure(t, err).Type)
}

// A function that this process does not have may be in another one. One with other schemas is refused.
func TestFunctionsThatTheProgramDoesNotHave(t *testing.T) {
	t.Parallel()
	set := newSet(t, func(context.Context, numbers) (any, error) { panic("called") })
	r := request(`{}`)
	r.Version = "2.0.0"
	_, err := execute(t, set, r)
	app, is := errors.AsType[*temporal.ApplicationError](err)
	require.True(t, is)
	require.Equal(t, flow.FunctionMissing, app.Type())
	require.False(t, app.NonRetryable())

	r = request(`{"a":1,"b":2}`)
	r.Signature = "sha256:" + strings.Repeat("0", 64)
	_, err = execute(t, set, r)
	require.Equal(t, "Function differs", requireFailure(t, err).Title)
}

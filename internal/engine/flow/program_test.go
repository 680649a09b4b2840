package flow_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
)

// fakeRunner executes programs and records them.
type fakeRunner struct {
	permits  []flow.PermitRequest
	programs []flow.ProgramRequest
	queues   []string
	refuse   error
	execute  func(n int) (flow.ProgramResult, error)
}

func (r *fakeRunner) register(b *testRun) {
	b.env.RegisterActivityWithOptions(func(_ context.Context, p flow.PermitRequest) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		r.permits = append(r.permits, p)
		return r.refuse
	}, activity.RegisterOptions{Name: flow.PermitActivity})
	b.env.RegisterActivityWithOptions(func(ctx context.Context, p flow.ProgramRequest) (flow.ProgramResult, error) {
		b.mu.Lock()
		r.programs, r.queues = append(r.programs, p), append(r.queues, activity.GetInfo(ctx).TaskQueue)
		n := len(r.programs)
		b.mu.Unlock()
		return r.execute(n)
	}, activity.RegisterOptions{Name: flow.ProgramActivity})
}

const script = `{script: {language: js, code: 'x', arguments: {n: '${ .n }'}}}`

func TestProgramIsExecutedOnceItIsPermitted(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `do: [{p: {run: `+script+`}}]`, `{"n": 5}`)
	r := &fakeRunner{execute: func(int) (flow.ProgramResult, error) { return flow.ProgramResult{Stdout: "out"}, nil }}
	b.began = func() { r.register(b) }
	b.completes(`"out"`)
	require.Len(t, r.permits, 1)
	require.Equal(t, "script", r.permits[0].Kind)
	require.Len(t, r.programs, 1)
	require.Equal(t, "js", r.programs[0].Language)
	require.JSONEq(t, `5`, string(r.programs[0].Named["n"]))
	require.Equal(t, flow.DefaultLimits().ProgramTimeout, r.programs[0].Timeout)
	require.Equal(t, []string{"signalbox.runner-" + r.programs[0].Project}, r.queues)
}

func TestProgramThatIsNotPermitted(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `do:
  - p:
      try: [{q: {run: `+script+`}}]
      catch: {as: e, do: [{s: {set: {status: '${ $e.status }'}}}]}`, `{"n": 5}`)
	r := &fakeRunner{refuse: flow.CallError(flow.CategoryRefused,
		dsl.Error{Type: dsl.ErrorTypeAuthorization, Status: 403, Title: "Program not permitted"}, nil)}
	b.began = func() { r.register(b) }
	b.completes(`{"status": 403}`)
	require.Empty(t, r.programs)
}

// A lost runner: only a program without effects, or one that the task allows to repeat, is executed again.
func TestLostRunner(t *testing.T) {
	t.Parallel()
	lost := func(n int) (flow.ProgramResult, error) {
		if n < 3 {
			return flow.ProgramResult{}, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_HEARTBEAT, nil)
		}
		return flow.ProgramResult{Stdout: "third"}, nil
	}
	for task, want := range map[string]struct {
		output string
		times  int
	}{
		`run: ` + script: {`"third"`, 3},
		`run: {shell: {command: x}}, metadata: {signalbox.repeat: allowed}`: {`"third"`, 3},
		`run: {shell: {command: x}}`:                                        {`"Outcome unknown"`, 1},
		`run: ` + script + `, metadata: {signalbox.repeat: never}`:          {`"Outcome unknown"`, 1},
	} {
		t.Run(task, func(t *testing.T) {
			t.Parallel()
			b := newTestRun(t, `do:
  - p:
      try: [{q: {`+task+`}}]
      catch: {as: e, do: [{s: {set: '${ $e.title }'}}]}`, `{"n": 5}`)
			r := &fakeRunner{execute: lost}
			b.began = func() { r.register(b) }
			b.completes(want.output)
			require.Len(t, r.programs, want.times)
		})
	}
}

func TestProgramThatIsTooLarge(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `do:
  - p:
      try: [{q: {run: {script: {language: js, code: 'x', stdin: '${ "x" * 900000 }'}}}}]
      catch: {as: e, do: [{s: {set: '${ $e.status }'}}]}`, `{}`)
	r := &fakeRunner{}
	b.began = func() { r.register(b) }
	b.completes(`413`)
	require.Empty(t, r.permits)
}

func TestProgramThatIsCanceledAtOnce(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `do:
  - f: {fork: {compete: true, branches: [{p: {run: `+script+`}}, {s: {set: {a: 1}}}]}}`, `{"n": 5}`)
	r := &fakeRunner{execute: func(int) (flow.ProgramResult, error) { return flow.ProgramResult{}, nil }}
	b.began = func() { r.register(b) }
	b.completes(`{"a": 1}`)
	require.Empty(t, r.programs)
}

// A source that only the run knows is read by a call, and the program has its hash.
func TestProgramWithASourceThatOnlyTheRunKnows(t *testing.T) {
	t.Parallel()
	b := newTestRun(t, `do: [{p: {run: {script: {language: js, source: {endpoint: 'https://code.example/{file}'}}}}}]`,
		`{"file": "a.js"}`)
	b.origin = func(context.Context, flow.HTTPRequest) (flow.HTTPResponse, error) {
		return flow.HTTPResponse{StatusCode: 200, Content: json.RawMessage(`"Y29uc29sZS5sb2coMSk="`)}, nil
	}
	r := &fakeRunner{execute: func(int) (flow.ProgramResult, error) { return flow.ProgramResult{Stdout: "1"}, nil }}
	b.began = func() { r.register(b) }
	b.completes(`"1"`)
	require.Len(t, b.requests, 1)
	require.Equal(t, "https://code.example/a.js", b.requests[0].URL)
	require.Len(t, r.programs, 1)
	require.Equal(t, "console.log(1)", r.programs[0].Code)
	require.Equal(t, &flow.ProgramSource{URI: "https://code.example/a.js", Hash: dsl.ContentHash([]byte("console.log(1)"))},
		r.programs[0].Source)
}

package flow_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
)

func TestEndOfAStream(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		printed string
		want    flow.LogStream
	}{
		"nothing":               {"", flow.LogStream{}},
		"all of it":             {"12345678\n", flow.LogStream{Text: "12345678\n"}},
		"from a line":           {"one\ntwos\nthree\n", flow.LogStream{Text: "three\n", SkippedBytes: 9, SkippedLines: 2}},
		"exactly at a line":     {"zero\n123456789\n", flow.LogStream{Text: "123456789\n", SkippedBytes: 5, SkippedLines: 1}},
		"within a line":         {"123456789012", flow.LogStream{Text: "3456789012", SkippedBytes: 2}},
		"not in a character":    {"é345678901", flow.LogStream{Text: "345678901", SkippedBytes: 2}},
		"a line end at its end": {"12345678901\n", flow.LogStream{Text: "345678901\n", SkippedBytes: 2}},
	} {
		require.Equal(t, tt.want, flow.EndOf(tt.printed, 10), name)
	}
}

// heartbeatTimeout is the error of an activity whose runner was lost after a heartbeat.
func heartbeatTimeout(t *testing.T, log flow.ProgramLog) error {
	t.Helper()
	return temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_HEARTBEAT, nil, log)
}

func TestLogsOfProgramsAreRecorded(t *testing.T) {
	t.Parallel()
	log := flow.ProgramLog{Step: 1, Task: "p", Attempt: 1, Stdout: flow.LogStream{Text: "begun\n"}}
	for name, tt := range map[string]struct {
		task    string
		execute func(n int) (flow.ProgramResult, error)
		want    []flow.ProgramLog
	}{
		"a result": {`run: ` + script, func(int) (flow.ProgramResult, error) {
			return flow.ProgramResult{Stdout: "out\n", Stderr: "err\n"}, nil
		}, []flow.ProgramLog{{Step: 1, Task: "p", Attempt: 1, Stdout: flow.LogStream{Text: "out\n"},
			Stderr: flow.LogStream{Text: "err\n"}}}},
		"its code alone": {`run: {script: {language: js, code: 'x'}, return: code}`,
			func(int) (flow.ProgramResult, error) { return flow.ProgramResult{Code: 3, Stderr: "why"}, nil },
			[]flow.ProgramLog{{Step: 1, Task: "p", Attempt: 1, Stderr: flow.LogStream{Text: "why"}}}},
		"nothing printed": {`run: ` + script,
			func(int) (flow.ProgramResult, error) { return flow.ProgramResult{}, nil }, nil},
		"an error": {`run: ` + script, func(int) (flow.ProgramResult, error) {
			return flow.ProgramResult{}, flow.WithLog(flow.CallError(flow.CategoryAnswered,
				dsl.Error{Type: dsl.ErrorTypeTimeout, Status: 408, Title: "Program too slow"}, nil), log)
		}, []flow.ProgramLog{log}},
		"a lost runner, and the next one": {`run: ` + script, func(n int) (flow.ProgramResult, error) {
			if n == 1 {
				return flow.ProgramResult{}, heartbeatTimeout(t, log)
			}
			return flow.ProgramResult{Stdout: "second"}, nil
		}, []flow.ProgramLog{log, {Step: 1, Task: "p", Attempt: 2, Stdout: flow.LogStream{Text: "second"}}}},
		"a runner that stops": {`run: ` + script, func(n int) (flow.ProgramResult, error) {
			if n == 1 {
				return flow.ProgramResult{}, flow.WithLog(flow.Interrupted("the runner stops"), log)
			}
			return flow.ProgramResult{Stdout: "second"}, nil
		}, []flow.ProgramLog{log, {Step: 1, Task: "p", Attempt: 2, Stdout: flow.LogStream{Text: "second"}}}},
		"a long one": {`run: ` + script, func(int) (flow.ProgramResult, error) {
			return flow.ProgramResult{Stdout: "first\n" + strings.Repeat("x", flow.KeptLog-1) + "\n"}, nil
		}, []flow.ProgramLog{{Step: 1, Task: "p", Attempt: 1, Stdout: flow.LogStream{
			Text: strings.Repeat("x", flow.KeptLog-1) + "\n", SkippedBytes: 6, SkippedLines: 1}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestRun(t, `do: [{p: {`+tt.task+`}}]`, `{"n": 5}`)
			r := &fakeRunner{execute: tt.execute}
			b.began = func() { r.register(b) }
			_, _ = b.run() // some fail
			require.Equal(t, tt.want, b.recorder.logs)
		})
	}
}

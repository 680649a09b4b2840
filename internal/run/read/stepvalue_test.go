package read_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/read"
)

// recorded has one run with two steps. It is the rows, the history and the redaction of the run.
type recorded struct {
	mu     sync.Mutex
	steps  []run.Step
	values map[bool]string // by whether it is the output
	err    error
	reads  int
	at     []redact.Location
}

func newRecorded() *recorded {
	return &recorded{
		steps: []run.Step{
			{Number: 1, Pointer: "/do/0/load", Task: "load", Sequence: 7, Input: json.RawMessage(`{"n": 1}`),
				Output: json.RawMessage(`{"a/b":[]}`), OutputSize: 573_034},
			{Number: 3, Pointer: "/do/1/next", Task: "next", Sequence: 9, Input: json.RawMessage(`[true]`)},
		},
		values: map[bool]string{true: `{"a/b":[{"id":1.10},"secret"],"~":null}`},
	}
}

func (r *recorded) Get(_ context.Context, _, id string) (run.Run, error) { return run.Run{ID: id}, nil }

func (r *recorded) Steps(_ context.Context, _, _ string, f run.StepFilter) (run.StepPage, error) {
	for _, s := range r.steps {
		if s.Number > f.After {
			return run.StepPage{Steps: []run.Step{s}}, nil
		}
	}
	return run.StepPage{}, nil
}

func (r *recorded) source() source     { return source{r} }
func (r *recorded) redactor() redactor { return redactor{r} }

type source struct{ *recorded }

func (s source) StepValue(_ context.Context, _ run.Run, _ run.Step, output bool) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return json.RawMessage(s.values[output]), s.err
}

type redactor struct{ *recorded }

func (r redactor) StepValue(_ context.Context, _ string, at redact.Location,
	value json.RawMessage) (json.RawMessage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = append(r.at, at)
	return json.RawMessage(strings.ReplaceAll(string(value), "secret", redact.Mark)), nil
}

func (r *recorded) reader() *read.StepValueReader {
	return read.NewStepValueReader(read.StepValueOptions{Runs: r, Source: r.source(), Redactor: r.redactor()})
}

func TestPartsOfAWholeValue(t *testing.T) {
	t.Parallel()
	r := newRecorded()
	reader := r.reader()
	for pointer, want := range map[string]string{
		"": `{"a/b":[{"id":1.10},"` + redact.Mark + `"],"~":null}`, "/a~1b": `[{"id":1.10},"` + redact.Mark +
			`"]`, "/a~1b/0/id": `1.10`, "/a~1b/1": `"` + redact.Mark + `"`, "/~0": `null`,
	} {
		got, err := reader.Read(t.Context(), read.StepValueRequest{RunID: "r", Number: 1, Output: true, Pointer: pointer})
		require.NoError(t, err, pointer)
		require.Equal(t, want, string(got), pointer)
	}
	require.Equal(t, 1, r.reads, "the value is kept for the next pages")
	require.Equal(t, []redact.Location{{Pointer: "/do/0/load", Task: "load", Output: true}}, r.at)
	for _, pointer := range []string{"/x", "/a~1b/2", "/a~1b/00", "/a~1b/-1", "/a~1b/0/id/0", "/a~1b/1/0"} {
		_, err := reader.Read(t.Context(), read.StepValueRequest{RunID: "r", Number: 1, Output: true, Pointer: pointer})
		require.True(t, apperror.Is(err, apperror.ValueNotRecorded), "%s: %v", pointer, err)
	}
	_, err := reader.Read(t.Context(), read.StepValueRequest{RunID: "r", Number: 1, Output: true, Pointer: "a"})
	require.True(t, apperror.Is(err, apperror.InvalidArgument), "%v", err)
}

func TestAChangedStepIsReadAgain(t *testing.T) {
	t.Parallel()
	r := newRecorded()
	reader := r.reader()
	read := func() string {
		got, err := reader.Read(t.Context(), read.StepValueRequest{RunID: "r", Number: 1, Output: true})
		require.NoError(t, err)
		return string(got)
	}
	read()
	r.steps[0].Sequence++
	r.values[true] = `"later"`
	require.Equal(t, `"later"`, read())
}

func TestValuesOfRowsNeedNoHistory(t *testing.T) {
	t.Parallel()
	r := newRecorded()
	r.err = run.ErrNotKnown
	got, err := r.reader().Read(t.Context(), read.StepValueRequest{RunID: "r", Number: 1})
	require.NoError(t, err)
	require.Equal(t, `{"n": 1}`, string(got))
	got, err = r.reader().Read(t.Context(), read.StepValueRequest{RunID: "r", Number: 3, Pointer: "/0"})
	require.NoError(t, err)
	require.Equal(t, `true`, string(got))
	require.Zero(t, r.reads)
}

func TestMissingValues(t *testing.T) {
	t.Parallel()
	r := newRecorded()
	r.err = run.ErrNotKnown
	reader := r.reader()
	_, err := reader.Read(t.Context(), read.StepValueRequest{RunID: "r", Number: 1, Output: true})
	require.True(t, apperror.Is(err, apperror.ValueNotRecorded), "%v", err)
	require.ErrorContains(t, err, `the output of step 1 of run "r" is not available whole`)
	_, err = reader.Read(t.Context(), read.StepValueRequest{RunID: "r", Number: 3, Output: true})
	require.True(t, apperror.Is(err, apperror.ValueNotRecorded), "%v", err)
	_, err = reader.Read(t.Context(), read.StepValueRequest{RunID: "r", Number: 2, Output: true})
	require.True(t, apperror.Is(err, apperror.StepNotFound), "%v", err)
	r.err = apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "away").WithRetry(time.Second)
	_, err = reader.Read(t.Context(), read.StepValueRequest{RunID: "r", Number: 1, Output: true})
	require.True(t, apperror.Is(err, apperror.EngineUnavailable), "%v", err)
}

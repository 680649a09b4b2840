// Package replay_test replays the recorded histories of every released interpreter with this one: a run that an older
// worker began must continue here without nondeterminism, and produce the same records.
package replay_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine"
	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/telemetry/tracing"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/replay/scenario"
)

// library returns the scenarios' documents by hash.
type library map[string]*dsl.Document

func (l library) Document(_ context.Context, hash string) (*dsl.Document, error) {
	if doc, ok := l[hash]; ok {
		return doc, nil
	}
	return nil, fmt.Errorf("no scenario has the document %s: a recorded document was changed", hash)
}

// ledger keeps the newest record of each step, and of the run.
type ledger struct {
	mu    sync.Mutex
	run   *interp.RunRecord
	steps map[int64]interp.StepRecord
}

func (l *ledger) Records(_ flow.Execution, _ int64, run *interp.RunRecord, steps []interp.StepRecord,
	_ []flow.ProgramLog, _ []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if run != nil {
		l.run = run
	}
	for _, s := range steps {
		l.steps[s.Number] = s
	}
}

// step is the recorded part of a step.
type step struct {
	Number int64  `json:"number"`
	Path   string `json:"path"`
	Status string `json:"status"`
	Output string `json:"output"`
}

func TestRecordedHistoriesReplay(t *testing.T) {
	t.Parallel()
	scenarios, err := scenario.All()
	require.NoError(t, err)
	docs := library{}
	for _, s := range scenarios {
		doc, err := s.Document()
		require.NoError(t, err, s.Name)
		docs[doc.Hash()] = doc
	}
	for version := 1; version <= interp.Version; version++ {
		for _, s := range scenarios {
			if version < s.Since {
				continue
			}
			folder := filepath.Join("testdata", strconv.Itoa(version), s.Name)
			t.Run(folder, func(t *testing.T) {
				t.Parallel()
				require.DirExists(t, folder, "record it: see replay/record")
				agrees(t, s, replay(t, docs, folder, s.Status))
				replay(t, docs, folder, s.Status, traced(t))
			})
		}
	}
}

// traced returns the interceptor of a worker with traces: histories replay with and without it.
func traced(t *testing.T) interceptor.WorkerInterceptor {
	t.Helper()
	spans := tracing.New(t.Context(), tracing.Options{Exporter: noSpans{t}, Resource: resource.Empty()})
	t.Cleanup(func() { require.NoError(t, spans.Shutdown(context.WithoutCancel(t.Context()))) })
	return engine.TraceRuns(spans, converter.GetDefaultDataConverter())
}

// noSpans fails the test if a replay exports a span.
type noSpans struct{ t *testing.T }

func (n noSpans) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	n.t.Errorf("a replay exported %d spans, the first is %q", len(spans), spans[0].Name())
	return nil
}

func (noSpans) Shutdown(context.Context) error { return nil }

func replay(t *testing.T, docs library, folder, status string, interceptors ...interceptor.WorkerInterceptor) *ledger {
	t.Helper()
	records := &ledger{steps: map[int64]interp.StepRecord{}}
	run, options := referring(t, folder)
	options.Interceptors = interceptors
	replayer, err := worker.NewWorkflowReplayerWithOptions(options)
	require.NoError(t, err)
	w := flow.New(t.Context(), docs, records, flow.DefaultLimits())
	replayer.RegisterWorkflowWithOptions(w.Run, workflow.RegisterOptions{Name: contract.RunWorkflow})
	executions := 0
	for i := 0; ; i++ {
		path := filepath.Join(folder, "history-"+strconv.Itoa(i)+".json")
		if _, err := os.Stat(path); i > 0 && err != nil {
			break
		}
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		history, err := client.HistoryFromJSON(strings.NewReader(string(data)), client.HistoryJSONOptions{})
		require.NoError(t, err)
		first := history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
		require.NoError(t, replayer.ReplayWorkflowHistoryWithOptions(nil, history, worker.ReplayWorkflowHistoryOptions{
			// the ID with which payloads are sealed
			OriginalExecution: workflow.Execution{ID: run, RunID: first.GetOriginalExecutionRunId()},
		}), path)
		executions++
	}
	if name := filepath.Base(folder); name == "continued" || name == "references" {
		require.Greater(t, executions, 1, "this scenario must continue as new")
	}
	data, err := os.ReadFile(filepath.Join(folder, "run.json"))
	require.NoError(t, err)
	var want signalboxv1.Run
	require.NoError(t, protojson.Unmarshal(data, &want))
	require.NotNil(t, records.run)
	require.Equal(t, status, string(records.run.Status))
	require.Equal(t, want.GetStatus(), string(records.run.Status))
	require.Equal(t, want.GetOutput().GetJson(), string(records.run.Output))
	if want.GetError() != nil {
		require.Equal(t, want.GetError().GetType(), records.run.Error.Type)
		require.Equal(t, want.GetError().GetInstance(), records.run.Error.Instance)
	}

	recorded := steps(t, filepath.Join(folder, "steps.jsonl"))
	require.Len(t, records.steps, len(recorded))
	for _, want := range recorded {
		got := records.steps[want.Number]
		require.Equal(t, want, step{
			Number: got.Number, Path: got.Path, Status: string(got.Status), Output: string(got.Output)})
	}
	return records
}

// recordedPayloads are the values that a recorded history refers to.
type recordedPayloads map[string][]byte

func (p recordedPayloads) Get(_ context.Context, runID, digest string) (value []byte, found bool, err error) {
	value, found = p[runID+digest]
	return value, found, nil
}

func (recordedPayloads) Put(context.Context, string, string, []byte) error {
	return errors.New("a replay keeps no payload")
}

func (recordedPayloads) Writable(context.Context) error { return nil }

// Names implements [codec.Values].
func (recordedPayloads) Names() []string { return []string{"the records"} }

// referring returns the ID of the run to which a history's references belong, and the replay options that resolve them.
// Other recordings have their values in the history.
func referring(t *testing.T, folder string) (run string, options worker.WorkflowReplayerOptions) {
	t.Helper()
	options = worker.WorkflowReplayerOptions{DisableDeadlockDetection: true}
	data, err := os.ReadFile(filepath.Join(folder, scenario.PayloadsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", options
	}
	require.NoError(t, err)
	var recorded []scenario.Payload
	require.NoError(t, json.Unmarshal(data, &recorded))
	require.NotEmpty(t, recorded)
	values := recordedPayloads{}
	for _, p := range recorded {
		run = p.Run
		values[p.Run+p.Digest] = p.Value
	}
	options.DataConverter = codec.Converter(platform.Keys(t))
	options.ExternalStorage = codec.New(values, codec.Options{}).External()
	return run, options
}

func steps(t *testing.T, path string) []step {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	var out []step
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s step
		require.NoError(t, json.Unmarshal(lines.Bytes(), &s))
		out = append(out, s)
	}
	require.NoError(t, lines.Err())
	return out
}

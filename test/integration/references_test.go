package integration_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/internal/engine/codec"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// payloadTable reads the payloads of a server's database. It implements the reader of payloads as well.
type payloadTable struct{ db *sql.DB }

func openPayloadTable(t *testing.T, store platform.Store) payloadTable {
	t.Helper()
	dsn := store.DSN
	if store.Driver == "sqlite" {
		dsn = "file:" + dsn + "?_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(map[string]string{"sqlite": "sqlite", "postgres": "pgx"}[store.Driver], dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return payloadTable{db}
}

func (k payloadTable) count(t *testing.T, runs ...string) (all []int) {
	t.Helper()
	for _, id := range runs {
		var n int
		require.NoError(t, k.db.QueryRowContext(t.Context(), `SELECT count(*) FROM payloads WHERE run_id = $1`, id).Scan(&n))
		all = append(all, n)
	}
	return all
}

func (k payloadTable) Get(ctx context.Context, run, digest string) (value []byte, found bool, err error) {
	err = k.db.QueryRowContext(ctx, `SELECT value FROM payloads WHERE run_id = $1 AND digest = $2`, run,
		digest).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	return value, err == nil, err
}

func (payloadTable) Put(context.Context, string, string, []byte) error { return errors.ErrUnsupported }
func (payloadTable) Writable(context.Context) error                    { return errors.ErrUnsupported }

// Names implements [codec.Values].
func (payloadTable) Names() []string { return []string{"the database"} }

const (
	largeSize     = 200_000
	largeReceived = "  - hear: {listen: {to: {one: {with: {type: %s}}}}, output: {as: '${ $input }'}}\n  - size: {set: " +
		"'${ {n: (.v | length)} }'}\n"
	largeOutput = `{"n":200000}`
)

func largeInput() string { return `{"v":"` + strings.Repeat("c", largeSize) + `"}` }

// The test deletes a run whose child is replayed, and whose replay is open, with its large input; and then all
// of them.
func TestLargeValuesAreDeletedWithTheirRuns(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		options := platform.ServerOptions{
			Temporal: platform.StartTemporal(t).Address, Store: store, Port: platform.FreePort(t)}
		s := platform.StartServer(t, options)
		values := openPayloadTable(t, store)
		childRun := s.Publish(t, platform.Document("large-kid", fmt.Sprintf(largeReceived, "go.child")))
		namespace, name, _ := strings.Cut(childRun, "/")
		parents := s.Publish(t, platform.Document("large-parent",
			"  - r:\n      run:\n        workflow: {namespace: "+namespace+", name: "+name+
				", version: '1.0.0', input: {v: '${ .v }'}}\n        await: false\n"+fmt.Sprintf(largeReceived, "go.parent")))
		send := func(kinds ...string) {
			for _, kind := range kinds {
				status, body, err := s.Do(t.Context(), http.MethodPost, "/v1/projects/default/events",
					map[string][]string{"Content-Type": {"application/cloudevents+json"}},
					strings.NewReader(fmt.Sprintf(`{"specversion":"1.0","id":"%d","source":"/test","type":"%s"}`, rand.Uint64(),
						kind)))
				require.NoError(t, err)
				require.Equal(t, http.StatusAccepted, status, body)
			}
		}
		replayed := func(id string) string {
			made, err := s.Control(t.Context(), "replay", id, "once more")
			require.NoError(t, err)
			awaitWaiting(t, s, made.GetId(), "event")
			return made.GetId()
		}
		completes := func(runs ...string) {
			for _, id := range runs {
				require.JSONEq(t, largeOutput, s.Await(t, id, soon, "completed").GetOutput().GetJson())
			}
		}
		parent := s.Start(t, parents, largeInput()).GetId()
		awaitWaiting(t, s, parent, "event")
		first := child(t, s, parent).GetId()
		awaitWaiting(t, s, first, "event")
		send("go.parent", "go.child")
		completes(parent, first)
		replay := replayed(parent)
		children := []string{first, child(t, s, replay).GetId()}
		awaitWaiting(t, s, children[1], "event")
		others := append([]string{replay}, children...)
		for _, n := range values.count(t, append(others, parent)...) {
			require.Positive(t, n)
		}
		stop := func() {
			s.Terminate()
			_, ended := s.WaitFor(soon)
			require.True(t, ended)
		}
		// ages makes runs two hours older, and all payloads more than a day: retention deletes payloads without a run only
		// after a day.
		ages := func(condition string) {
			age(t, store, `UPDATE runs SET created_at = created_at - 2h, status_at = status_at - 2h, ended_at = ended_at - 2h WHERE `+condition,
				`UPDATE payloads SET created_at = created_at - 13 * 2h`)
		}
		stop()
		ages("id = '" + parent + "'")
		options.Env = []string{"SIGNALBOX_RETENTION_INTERVAL=1s", "SIGNALBOX_RETENTION_RUNS_MAX_AGE=1h"}
		s = platform.StartServer(t, options) // with empty caches
		awaitGone := func(runs ...string) {
			platform.Eventually(t, soon, func() string {
				for i, n := range values.count(t, runs...) {
					if n > 0 {
						return fmt.Sprintf("run %s has %d payloads", runs[i], n)
					}
				}
				return ""
			})
		}
		awaitGone(parent)
		requireOneLine(t, s.CLI(t, "run", "show", parent), platform.ExitNotFound, "RUN_NOT_FOUND")
		others = append(others, replayed(first))
		send("go.parent", "go.child")
		completes(others...)
		require.JSONEq(t, largeInput(), s.Run(t, replay).GetInput().GetJson())
		stop()
		ages("1 = 1")
		s = platform.StartServer(t, options)
		awaitGone(others...)
	})
}

// library has one document.
type library struct{ doc *dsl.Document }

func (l library) Document(context.Context, string) (*dsl.Document, error) { return l.doc, nil }

// discardRecords drops all records.
type discardRecords struct{}

func (discardRecords) Records(flow.Execution, int64, *interp.RunRecord, []interp.StepRecord,
	[]flow.ProgramLog, []string) {
}

// The test decrypts the large values of a history by the codec endpoint, replays the history, and rebuilds the rows of
// its run.
func TestHistoriesWithReferences(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		w := newEnvironment(t, store, "SIGNALBOX_ENCRYPTION_CODEC_ENDPOINT=true")
		o := origin.New(t)
		o.Answer("GET /large", 200, largeInput())
		source := platform.Document("referring", "  - rest: {wait: {milliseconds: 10}}\n"+getStep("get", o.URL+"/large")+
			"  - again: {wait: {milliseconds: 10}}\n  - keep: {set: '${ . }'}\n")
		name := w.Publish(t, source)
		id := w.Start(t, name, largeInput()).GetId()
		w.awaitRow(t, soon, name, id, "completed")
		run, steps := w.Run(t, id), w.Steps(t, id)
		require.JSONEq(t, largeInput(), run.GetOutput().GetJson())
		require.Positive(t, openPayloadTable(t, store).count(t, id)[0])

		doc, violations := dsl.Parse([]byte(source))
		require.False(t, violations.HasErrors(), "%v", violations)
		references := platform.RawHistory(t, w.client, id)
		replay := func(values codec.Values) error {
			replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
				DisableDeadlockDetection: true, DataConverter: codec.Converter(platform.Keys(t)),
				ExternalStorage: codec.New(values, codec.Options{}).External(),
			})
			require.NoError(t, err)
			replayer.RegisterWorkflowWithOptions(flow.New(t.Context(), library{doc}, discardRecords{}, flow.DefaultLimits()).Run,
				workflow.RegisterOptions{Name: contract.RunWorkflow})
			history, _ := proto.Clone(references).(*historypb.History)
			return replayer.ReplayWorkflowHistoryWithOptions(nil, history, worker.ReplayWorkflowHistoryOptions{
				// the ID with which payloads are sealed
				OriginalExecution: workflow.Execution{ID: id, RunID: run.GetTemporal().GetRunId()},
			})
		}
		require.NoError(t, replay(openPayloadTable(t, store)))
		require.ErrorIs(t, replay(noPayloads{}), codec.ErrMissing)

		input := references.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetInput()
		require.Less(t, proto.Size(input), 2_000, "a reference")
		body, err := protojson.Marshal(input)
		require.NoError(t, err)
		code, answer, err := w.Do(t.Context(), http.MethodPost, codecPath,
			map[string][]string{"Content-Type": {"application/json"}}, strings.NewReader(string(body)))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, code, answer)
		var opened commonpb.Payloads
		require.NoError(t, protojson.Unmarshal([]byte(answer), &opened))
		require.Contains(t, string(opened.GetPayloads()[0].GetData()), strings.Repeat("c", largeSize))

		w.forget(t, id)
		w.awaitRow(t, agreed, name, id, "completed")
		rebuilt := w.Run(t, id)
		require.JSONEq(t, run.GetInput().GetJson(), rebuilt.GetInput().GetJson())
		require.JSONEq(t, run.GetOutput().GetJson(), rebuilt.GetOutput().GetJson())
		plain := func(steps []*signalboxv1.Step) (all []string) {
			for _, s := range steps {
				s.Sequence = 0 // it counts changes of rows
				text, err := protojson.Marshal(s)
				require.NoError(t, err)
				all = append(all, string(text))
			}
			return all
		}
		again := plain(w.Steps(t, id))
		for i, want := range plain(steps) {
			require.JSONEq(t, want, again[i])
		}
		require.Len(t, again, len(steps))
	})
}

// noPayloads is a database without payloads.
type noPayloads struct{ payloadTable }

func (noPayloads) Get(context.Context, string, string) ([]byte, bool, error) { return nil, false, nil }

package start_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
	"github.com/signalbox-dev/signalbox/internal/run/read"
	"github.com/signalbox-dev/signalbox/internal/run/start"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	here         = project.Default
	startTimeout = 10 * time.Second
	maxInput     = 200
)

// engineDouble replaces Temporal: it returns what a test sets, and accepts everything by default.
type engineDouble struct {
	check  func(context.Context) error
	start  func(context.Context, run.Run) (string, error)
	cancel func(context.Context, run.Run) error
	// end and control are the answers to Terminate and Control.
	end     func(context.Context, run.Run) error
	control func(context.Context, run.Run, string) error
	inspect func(context.Context, run.Run) (run.Execution, error)

	mu    sync.Mutex
	calls []string
}

func (e *engineDouble) record(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, fmt.Sprintf(format, args...))
}

// called returns the calls since the previous call of called.
func (e *engineDouble) called() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	calls := e.calls
	e.calls = nil
	return calls
}

func (e *engineDouble) Check(ctx context.Context) error {
	e.record("check")
	e.mu.Lock()
	check := e.check
	e.mu.Unlock()
	if check == nil {
		return nil
	}
	return check(ctx)
}

func (e *engineDouble) Start(ctx context.Context, r run.Run) (string, error) {
	e.record("start %s", r.ID)
	if e.start == nil {
		return "execution-" + r.ID, nil
	}
	return e.start(ctx, r)
}

func (e *engineDouble) Cancel(ctx context.Context, r run.Run, reason string) error {
	e.record("cancel %s %s", r.ID, reason)
	if e.cancel == nil {
		return nil
	}
	return e.cancel(ctx, r)
}

func (e *engineDouble) Terminate(ctx context.Context, r run.Run, reason string) error {
	e.record("terminate %s %s", r.ID, reason)
	if e.end == nil {
		return nil
	}
	return e.end(ctx, r)
}

func (e *engineDouble) Control(ctx context.Context, r run.Run, op, reason string) error {
	e.record("%s %s %s", op, r.ID, reason)
	if e.control == nil {
		return nil
	}
	return e.control(ctx, r, op)
}

func (e *engineDouble) Inspect(ctx context.Context, r run.Run) (run.Execution, error) {
	e.record("inspect %s", r.ID)
	if e.inspect == nil {
		return run.Execution{}, run.ErrNotKnown
	}
	return e.inspect(ctx, r)
}

// documents compiles the stored documents.
type documents struct{ store *storetest.Plain }

func (d documents) Document(ctx context.Context, hash string) (*dsl.Document, error) {
	canonical, err := d.store.Document(ctx, hash)
	if err != nil {
		return nil, err
	}
	doc, problems := dsl.Parse(canonical)
	if doc == nil {
		return nil, problems
	}
	return doc, nil
}

// tally counts as the service's metrics.
type tally struct {
	mu    sync.Mutex
	lines []string
}

func (m *tally) Count(_ context.Context, projectName, status string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lines = append(m.lines, projectName+" "+status)
}

func (m *tally) Started(context.Context, time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lines = append(m.lines, "started")
}

// controls lets a bench embed two services.
type controls = control.Service

// bench is the service over the real store and definitions, with a fake engine and a clock that the test advances.
type bench struct {
	*start.Service
	*controls
	*read.Reader

	ctx       context.Context // the test's, with the actor ada
	store     *storetest.Plain
	workflows *workflow.Service
	engine    *engineDouble
	changes   *pubsub.Notifier
	metrics   *tally
	opts      start.Options
	rate      float64 // of queues, in runs per second

	mu  sync.Mutex
	now time.Time
}

func newBench(t testing.TB) *bench {
	t.Helper()
	return newBenchOn(t, sqlite(t))
}

func sqlite(t testing.TB) store.Options {
	return store.Options{Driver: store.SQLite, DSN: storetest.SQLite(t), AutoMigrate: true, CallTimeout: time.Minute}
}

func postgres(t testing.TB) store.Options {
	return store.Options{Driver: store.Postgres, DSN: storetest.Postgres(t), AutoMigrate: true, CallTimeout: time.Minute}
}

// onBoth runs a test over each kind of store.
func onBoth(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	for name, options := range map[string]func(testing.TB) store.Options{"sqlite": sqlite, "postgres": postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newBenchOn(t, options(t)))
		})
	}
}

func newBenchOn(t testing.TB, o store.Options) *bench {
	t.Helper()
	kept, err := storetest.Open(t.Context(), t, o)
	require.NoError(t, err)
	ctx := t.Context()
	t.Cleanup(func() { require.NoError(t, kept.Stop(context.WithoutCancel(ctx))) })
	require.NoError(t, kept.Start(ctx))
	b := &bench{
		ctx: auth.WithActor(ctx, auth.Actor{Kind: auth.KindLocal, Name: "ada"}), store: kept, engine: &engineDouble{},
		changes: pubsub.NewNotifier(), metrics: &tally{}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
	b.workflows = workflow.NewService(kept, kept, dsl.DefaultLimits(), b.clock)
	b.opts = start.Options{
		MaxInputBytes: maxInput, StartTimeout: startTimeout, AnswerWithin: startTimeout, Interpreter: 7, Now: b.clock,
		Metrics:       b.metrics,
		MaxGeneration: func(context.Context, string) (int, error) { return 32, nil },
		Workers:       agreed{}, Digests: keyring.Random("k1"),
	}
	b.Service = b.process(t, kept, func(*start.Options) {})
	b.controls = b.controlled(b.Service, kept, nil)
	b.Reader = read.New(kept, b.engine, b.workflows, b.changes, read.Options{Now: b.clock})
	return b
}

// controlled returns the controls of a service, with rows and originals of inputs.
func (b *bench) controlled(s *start.Service, over run.Store, originals control.Originals) *controls {
	return control.New(s, over, b.engine, b.changes, control.Options{
		MaxInputBytes: b.opts.MaxInputBytes, StartTimeout: b.opts.StartTimeout, Originals: originals, Now: b.clock,
		Metrics: b.metrics,
	})
}

// agreed is the result of the check of workers.
type agreed struct{ err error }

func (a agreed) Check(context.Context, string) error { return a.err }

// process returns the service of one more process, with its own notifications of changes.
func (b *bench) process(t testing.TB, over run.Store, change func(*start.Options)) *start.Service {
	t.Helper()
	opts := b.opts
	change(&opts)
	changes := b.changes
	if b.Service != nil {
		changes = pubsub.NewNotifier()
	}
	s := start.New(over, b.engine, b.workflows, documents{b.store}, changes, opts)
	ctx := b.ctx
	t.Cleanup(func() {
		ended, end := context.WithCancel(context.WithoutCancel(ctx))
		end()
		_ = s.Close(ended)
	})
	return s
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bench) advance(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

const schema = `input: {schema: {document: {type: object, required: [name], properties: {name: {type: string}}}}}`

// publish publishes a version of a workflow with an input that requires a name.
func (b *bench) publish(t testing.TB, name, version string) workflow.Version {
	t.Helper()
	namespace, short, _ := strings.Cut(name, "/")
	source := fmt.Sprintf("document: {dsl: 1.0.3, namespace: %s, name: %s, version: '%s'}\n%s\ndo:\n  - a: {set: {n: "+
		"1}}\n",
		namespace, short, version, schema)
	p, err := b.workflows.Publish(b.ctx, here, workflow.Submission{Source: source}, "ada")
	require.NoError(t, err)
	return p.Version
}

func request() start.Request {
	return start.Request{
		Project: here, Workflow: "examples/hello", Input: json.RawMessage(`{"name": "Ada"}`), Trigger: run.TriggerAPI,
	}
}

// begin starts a run of hello, which it publishes first if needed, and discards the recorded calls.
func (b *bench) begin(t testing.TB) run.Run {
	t.Helper()
	b.publish(t, "examples/hello", "1.0.0")
	r, created, err := b.Start(b.ctx, request())
	require.NoError(t, err)
	require.True(t, created)
	b.engine.called()
	return r
}

// startUnknown starts a run with an unknown outcome.
func (b *bench) startUnknown(t testing.TB) run.Run {
	t.Helper()
	before := b.engine.start
	b.engine.start = func(context.Context, run.Run) (string, error) {
		return "", fmt.Errorf("starting: %w", run.ErrUnknownOutcome)
	}
	r := b.begin(t)
	b.engine.start = before
	require.Equal(t, run.QueuedStarting, r.QueuedReason)
	return r
}

// applyState writes a state as the projection does.
func (b *bench) applyState(t testing.TB, id string, position int64, status run.Status, steps ...run.Step) {
	t.Helper()
	u := run.Update{RunID: id, ExecutionID: "execution-" + id, Position: position, Steps: steps}
	u.State = &run.State{Status: status, Since: b.clock(), StartedAt: b.clock()}
	if status == run.Waiting {
		u.State.WaitingKind = "timer"
	}
	if status.Terminal() {
		u.State.EndedAt = b.clock()
	}
	_, err := b.store.ApplyUpdates(b.ctx, []run.Update{u})
	require.NoError(t, err)
}

func (b *bench) row(t testing.TB, id string) run.Run {
	t.Helper()
	r, err := b.store.GetRun(b.ctx, here, id)
	require.NoError(t, err)
	return r
}

func (b *bench) rows(t testing.TB) []run.Run {
	t.Helper()
	list, err := b.store.ListRuns(b.ctx, run.Filter{Project: here, Limit: 1000})
	require.NoError(t, err)
	return list
}

// audited returns the entries about runs, oldest first, as "action reason".
func (b *bench) audited(t testing.TB) []string {
	t.Helper()
	list, err := b.store.ListAudit(b.ctx, audit.Filter{Limit: 1000})
	require.NoError(t, err)
	var lines []string
	for _, e := range slices.Backward(list) {
		if strings.HasPrefix(e.Action, "run.") {
			lines = append(lines, strings.TrimSpace(e.Action+" "+e.Reason))
		}
	}
	return lines
}

func requireError(t testing.TB, err error, class apperror.Class, reason, says string) {
	t.Helper()
	f, ok := apperror.From(err)
	require.True(t, ok, "not a fault: %v", err)
	require.Equal(t, reason, f.Reason)
	require.Equal(t, class, f.Class)
	require.Contains(t, f.Message, says)
}

func unavailable() error {
	return apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "temporal does not answer")
}

func entry(b *bench, id string) audit.Entry {
	return audit.NewEntry(b.ctx, b.clock(), audit.RunStart, here, id, "")
}

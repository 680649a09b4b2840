package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/time/rate"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/heartbeat"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/remote"
	"github.com/signalbox-dev/signalbox/dispatch/internal/supervisor"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	orders = inbox.Name{Project: "shop", TaskQueue: "orders"}
	timing = dispatchtype.Timing{}.WithDefaults()
	errOut = errors.New("unavailable")
)

// fixture is the environment of a supervisor, by the bubble's clock.
type fixture struct {
	*supervisor.Supervisor
	t      *testing.T
	ctx    context.Context
	leases *store
	rows   *rows
	remote *temporal
	record *record
}

func run(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{
			t: t, ctx: t.Context(), leases: &store{memory: lease.NewMemory()}, rows: &rows{all: map[inbox.Name]inbox.Progress{}},
			remote: &temporal{open: map[string]*supervisor.Listed{}, answers: map[string]plan.Answer{}}, record: &record{},
		}
		f.Supervisor = f.another("me")
		test(t, f)
	})
}

// another returns the supervisor of another process in the same environment.
func (f *fixture) another(server string) *supervisor.Supervisor {
	heartbeats := heartbeat.NewWorkers(f.leases, time.Minute)
	return supervisor.New(supervisor.Options{
		Heartbeats: heartbeats.Entries, Listed: heartbeats.Listed,
		ServerID: server, Leases: f.leases, Inbox: f.rows, Temporal: f.remote, Guard: timing.Owner(),
		Pace: rate.NewLimiter(rate.Inf, 0), Record: f.record,
		Ready: f.remote.ready, Log: slog.New(slog.DiscardHandler),
		Rules: supervisor.Rules{
			Rules: plan.Rules{StaleAfter: timing.StaleAfter, Retention: timing.Retention, MaxActions: 20,
				LegacyIDs: []string{"router-{project}-*"}},
			Interval: time.Minute, Confirm: 2 * time.Second,
		},
	})
}

// store is an in-memory lease store with failures.
type store struct {
	mu     sync.Mutex
	memory *lease.Memory
	fail   map[string]error                     // by method
	before map[string]func(ctx context.Context) // by method, once
}

func (s *store) on(method string) error {
	s.mu.Lock()
	hook, err := s.before[method], s.fail[method]
	delete(s.before, method)
	s.mu.Unlock()
	if hook != nil {
		hook(context.Background())
	}
	return err
}

func (s *store) now() *lease.Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory
}

// loseData removes all entries.
func (s *store) loseData() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory = lease.NewMemory()
}

func (s *store) Renew(ctx context.Context, key, token string, value []byte, t lease.Lifetime) (lease.Entry, error) {
	return s.now().Renew(ctx, key, token, value, t)
}

func (s *store) Resign(ctx context.Context, key, token string) error {
	return s.now().Resign(ctx, key, token)
}

func (s *store) Watch(ctx context.Context) (<-chan string, error) { return s.now().Watch(ctx) }

func (s *store) failing(method string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail == nil {
		s.fail = map[string]error{}
	}
	s.fail[method] = err
}

func (s *store) first(method string, hook func(ctx context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.before == nil {
		s.before = map[string]func(context.Context){}
	}
	s.before[method] = hook
}

func (s *store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	if err := s.on("List " + prefix); err != nil {
		return func(yield func(lease.Entry, error) bool) { yield(lease.Entry{}, err) }
	}
	return s.now().List(ctx, prefix)
}

func (s *store) Get(ctx context.Context, key string) (lease.Entry, error) {
	if err := s.on("Get"); err != nil {
		return lease.Entry{}, err
	}
	return s.now().Get(ctx, key)
}

func (s *store) Acquire(ctx context.Context, key, holder string, value []byte,
	t lease.Lifetime) (lease.Entry, *lease.Entry, error) {
	if err := s.on("Acquire " + holder); err != nil {
		return lease.Entry{}, nil, err
	}
	return s.now().Acquire(ctx, key, holder, value, t)
}

func (s *store) Delete(ctx context.Context, key, token string, revision int64) error {
	if err := s.on("Delete"); err != nil {
		return err
	}
	return s.now().Delete(ctx, key, token, revision)
}

// rows are the progress rows of the inbox.
type rows struct {
	mu  sync.Mutex
	all map[inbox.Name]inbox.Progress
	err error
}

func (r *rows) Progress(_ context.Context, names ...inbox.Name) ([]inbox.Progress, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []inbox.Progress
	for _, p := range r.all {
		if len(names) == 0 || slices.Contains(names, p.Name) {
			out = append(out, p)
		}
	}
	return out, r.err
}

// temporal is a Temporal with the given open workflows.
type temporal struct {
	mu          sync.Mutex
	open        map[string]*supervisor.Listed // by run ID
	answers     map[string]plan.Answer
	away        error
	listErr     error
	describeErr error
	endErr      error
	onList      func() // once, after the list was made
	onEnd       func() // once, before it ends
	ended       []string
	asked       int
	describe    int
}

func (r *temporal) ready() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.away
}

func (r *temporal) List(context.Context) ([]supervisor.Listed, error) {
	r.mu.Lock()
	var out []supervisor.Listed
	for _, l := range r.open {
		out = append(out, *l)
	}
	hook, err := r.onList, r.listErr
	r.onList = nil
	r.mu.Unlock()
	if hook != nil {
		hook()
	}
	return out, err
}

func (r *temporal) Describe(_ context.Context, id, runID string) (*supervisor.Listed, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.describe++
	if r.describeErr != nil {
		return nil, r.describeErr
	}
	for _, l := range r.open {
		if l.WorkflowID == id && (runID == "" || l.RunID == runID) {
			copied := *l
			return &copied, nil
		}
	}
	return nil, nil
}

func (r *temporal) Ask(_ context.Context, _, runID string) plan.Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if a, ok := r.answers[runID]; ok {
		return a
	}
	return plan.Silent
}

func (r *temporal) Terminate(_ context.Context, id, runID, reason string) error {
	r.mu.Lock()
	hook := r.onEnd
	r.onEnd = nil
	r.mu.Unlock()
	if hook != nil {
		hook()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.endErr != nil {
		return r.endErr
	}
	if l := r.open[runID]; l == nil || l.WorkflowID != id {
		return remote.ErrGone
	}
	delete(r.open, runID)
	r.ended = append(r.ended, runID+": "+reason)
	return nil
}

// record has the recorded results.
type record struct {
	mu     sync.Mutex
	ended  []dispatchtype.Termination
	failed int
	clean  []time.Duration
	broken int
	cycles []supervisor.Cycle
}

func (r *record) Terminated(t dispatchtype.Termination, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failed++
		return
	}
	r.ended = append(r.ended, t)
}

func (r *record) Cleaned(_ inbox.Name, quiet time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clean = append(r.clean, quiet)
}

func (r *record) CleanupFailed(inbox.Name) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken++
}

func (r *record) Cycled(c supervisor.Cycle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cycles = append(r.cycles, c)
}

func (r *record) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.cycles)
}

// keepAlive keeps the heartbeat of a process, and the leases of names, until the returned function is called: then the
// process crashes.
func (f *fixture) keepAlive(server string, names ...inbox.Name) (crash func()) {
	ctx, cancel := context.WithCancel(f.ctx)
	keep := func(key string, t lease.Lifetime) {
		got, _, err := f.leases.now().Acquire(ctx, key, server, nil, t)
		require.NoError(f.t, err)
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-time.After(5 * time.Second):
					if _, err := f.leases.Renew(ctx, key, got.Token, nil, t); err != nil {
						return
					}
				}
			}
		}()
	}
	keep(wire.WorkerKey(server), timing.Worker())
	for _, name := range names {
		keep(wire.OwnerKey(name), timing.Owner())
	}
	synctest.Wait()
	return func() {
		cancel()
		synctest.Wait()
	}
}

// opens opens a dispatcher that the inbox has a row for.
func (f *fixture) opens(name inbox.Name, owner string, epoch int64) string {
	runID := fmt.Sprintf("run-%s-%d", name.Project, epoch)
	f.remote.mu.Lock()
	defer f.remote.mu.Unlock()
	f.remote.open[runID] = &supervisor.Listed{Execution: wire.Execution{
		WorkflowID: name.DispatcherID(), RunID: runID, Type: wire.WorkflowType, TaskQueue: name.TaskQueue,
		Memo: &wire.Memo{Name: name, Owner: owner, Epoch: epoch, Interpreter: 1},
	}}
	f.rows.mu.Lock()
	defer f.rows.mu.Unlock()
	f.rows.all[name] = inbox.Progress{
		Name: name, Owner: inbox.Owner{Epoch: epoch, Holder: owner}, SinceProgress: time.Hour, Parked: true}
	return runID
}

// set changes Temporal and the inbox.
func (f *fixture) set(change func()) {
	f.remote.mu.Lock()
	defer f.remote.mu.Unlock()
	f.rows.mu.Lock()
	defer f.rows.mu.Unlock()
	change()
}

// claimed sets the time since the last claim.
func (f *fixture) claimed(ago time.Duration) {
	f.set(func() {
		row := f.rows.all[orders]
		row.SinceProgress = ago
		f.rows.all[orders] = row
	})
}

// continueAs changes the run ID of the dispatcher; an empty one closes it.
func (f *fixture) continueAs(runID string) {
	f.set(func() {
		was := *f.remote.open["run-shop-3"]
		delete(f.remote.open, "run-shop-3")
		if was.RunID = runID; runID != "" {
			f.remote.open[runID] = &was
		}
	})
}

func (f *fixture) stillOpen() []string {
	f.remote.mu.Lock()
	defer f.remote.mu.Unlock()
	return slices.Sorted(maps.Keys(f.remote.open))
}

func (f *fixture) entry(name inbox.Name) *lease.Entry {
	e, err := f.leases.now().Get(f.ctx, wire.OwnerKey(name))
	if errors.Is(err, lease.ErrNotFound) {
		return nil
	}
	require.NoError(f.t, err)
	return &e
}

// crashed opens a dispatcher whose owner crashed a while ago, beside a live process.
func (f *fixture) crashed() string {
	f.keepAlive("me")
	runID := f.opens(orders, "a", 3)
	f.keepAlive("a", orders)()
	wait(time.Minute)
	return runID
}

func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// lines returns the items of a report, one per line.
func lines(r dispatchtype.Report) []string {
	var out []string
	for _, it := range r.Items {
		out = append(out, fmt.Sprintf("%s %s %s applied=%t %s", it.Action, it.Kind, it.RunID, it.Applied, it.Error))
	}
	return out
}

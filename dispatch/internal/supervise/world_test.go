package supervise_test

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

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/heart"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/remote"
	"github.com/signalbox-dev/signalbox/dispatch/internal/supervise"
	"github.com/signalbox-dev/signalbox/dispatch/internal/terms"
	"github.com/signalbox-dev/signalbox/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	orders = inbox.Name{Project: "shop", TaskQueue: "orders"}
	timing = terms.Timing{}.WithDefaults()
	errOut = errors.New("it is away")
)

// world is all that a supervisor sees, by the bubble's clock.
type world struct {
	*supervise.Supervisor
	t      *testing.T
	ctx    context.Context
	leases *store
	rows   *rows
	remote *temporal
	record *record
}

func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, ctx: t.Context(), leases: &store{memory: lease.NewMemory()}, rows: &rows{all: map[inbox.Name]inbox.Progress{}},
			remote: &temporal{open: map[string]*supervise.Listed{}, answers: map[string]plan.Answer{}}, record: &record{},
		}
		w.Supervisor = w.another("me")
		test(t, w)
	})
}

// another is the supervisor of another process in the same world.
func (w *world) another(server string) *supervise.Supervisor {
	roster := heart.NewRoster(w.leases, time.Minute)
	return supervise.New(supervise.Options{
		Beats: roster.Entries, Listed: roster.Listed,
		ServerID: server, Leases: w.leases, Inbox: w.rows, Temporal: w.remote, Guard: timing.Owner(), Pace: unpaced{}, Record: w.record,
		Ready: w.remote.ready, Log: slog.New(slog.DiscardHandler),
		Rules: supervise.Rules{
			Rules:    plan.Rules{StaleAfter: timing.StaleAfter, Retention: timing.Retention, Most: 20, LegacyIDs: []string{"router-{project}-*"}},
			Interval: time.Minute, Confirm: 2 * time.Second,
		},
	})
}

type unpaced struct{}

func (unpaced) Wait(ctx context.Context) bool { return ctx.Err() == nil }

// store is leases in memory that can be disturbed.
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

// loses everything.
func (s *store) loses() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory = lease.NewMemory()
}

func (s *store) Renew(ctx context.Context, key, token string, value []byte, t lease.Terms) (lease.Entry, error) {
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

func (s *store) Acquire(ctx context.Context, key, holder string, value []byte, t lease.Terms) (lease.Entry, *lease.Entry, error) {
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

// rows are the inbox's.
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

// temporal is one with the workflows that are open.
type temporal struct {
	mu       sync.Mutex
	open     map[string]*supervise.Listed // by run ID
	answers  map[string]plan.Answer
	away     error
	listErr  error
	endErr   error
	onList   func() // once, after the list was made
	onEnd    func() // once, before it ends
	ended    []string
	asked    int
	describe int
}

func (r *temporal) ready() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.away
}

func (r *temporal) List(context.Context) ([]supervise.Listed, error) {
	r.mu.Lock()
	var out []supervise.Listed
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

func (r *temporal) Describe(_ context.Context, id, runID string) (*supervise.Listed, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.describe++
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

// record is what was told.
type record struct {
	mu     sync.Mutex
	ended  []terms.Termination
	failed int
	clean  []time.Duration
	broken int
	cycles []supervise.Cycle
}

func (r *record) Terminated(t terms.Termination, err error) {
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

func (r *record) Cycled(c supervise.Cycle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cycles = append(r.cycles, c)
}

func (r *record) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.cycles)
}

// lives keeps the heartbeat of a process, and with names its leases, until the returned function is called: then it crashes.
func (w *world) lives(server string, names ...inbox.Name) (crash func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	keep := func(key string, t lease.Terms) {
		got, _, err := w.leases.now().Acquire(ctx, key, server, nil, t)
		require.NoError(w.t, err)
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-time.After(5 * time.Second):
					if _, err := w.leases.Renew(ctx, key, got.Token, nil, t); err != nil {
						return
					}
				}
			}
		}()
	}
	keep(contract.WorkerKey(server), timing.Worker())
	for _, name := range names {
		keep(contract.OwnerKey(name), timing.Owner())
	}
	synctest.Wait()
	return func() {
		cancel()
		synctest.Wait()
	}
}

// opens has a dispatcher open that the inbox knows.
func (w *world) opens(name inbox.Name, owner string, epoch int64) string {
	runID := fmt.Sprintf("run-%s-%d", name.Project, epoch)
	w.remote.mu.Lock()
	defer w.remote.mu.Unlock()
	w.remote.open[runID] = &supervise.Listed{Execution: contract.Execution{
		WorkflowID: name.DispatcherID(), RunID: runID, Type: contract.WorkflowType, TaskQueue: name.TaskQueue,
		Memo: &contract.Memo{Name: name, Owner: owner, Epoch: epoch, Interpreter: 1},
	}}
	w.rows.mu.Lock()
	defer w.rows.mu.Unlock()
	w.rows.all[name] = inbox.Progress{Name: name, Owner: inbox.Owner{Epoch: epoch, Holder: owner}, SinceProgress: time.Hour, Parked: true}
	return runID
}

// set changes what there is in Temporal and in the inbox.
func (w *world) set(change func()) {
	w.remote.mu.Lock()
	defer w.remote.mu.Unlock()
	w.rows.mu.Lock()
	defer w.rows.mu.Unlock()
	change()
}

// moves has the dispatcher claim so long ago.
func (w *world) moves(ago time.Duration) {
	w.set(func() {
		row := w.rows.all[orders]
		row.SinceProgress = ago
		w.rows.all[orders] = row
	})
}

// continues has the dispatcher go on under another run ID, empty for none.
func (w *world) continues(runID string) {
	w.set(func() {
		was := *w.remote.open["run-shop-3"]
		delete(w.remote.open, "run-shop-3")
		if was.RunID = runID; runID != "" {
			w.remote.open[runID] = &was
		}
	})
}

func (w *world) stillOpen() []string {
	w.remote.mu.Lock()
	defer w.remote.mu.Unlock()
	return slices.Sorted(maps.Keys(w.remote.open))
}

func (w *world) entry(name inbox.Name) *lease.Entry {
	e, err := w.leases.now().Get(w.ctx, contract.OwnerKey(name))
	if errors.Is(err, lease.ErrNotFound) {
		return nil
	}
	require.NoError(w.t, err)
	return &e
}

// crashed is a world in which the owner of a dispatcher crashed a while ago, and another process lives.
func (w *world) crashed() string {
	w.lives("me")
	runID := w.opens(orders, "a", 3)
	w.lives("a", orders)()
	wait(time.Minute)
	return runID
}

func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// lines are the items of a report, in a line each.
func lines(r supervise.Report) []string {
	var out []string
	for _, it := range r.Items {
		out = append(out, fmt.Sprintf("%s %s %s applied=%t %s", it.Action, it.Kind, it.RunID, it.Applied, it.Error))
	}
	return out
}

package owner_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/time/rate"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/inbox/memory"
	"github.com/signalbox-dev/signalbox/dispatch/internal/owner"
	"github.com/signalbox-dev/signalbox/dispatch/internal/remote"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var name = inbox.Name{Project: "shop", TaskQueue: "orders"}

// fixture is the environment of the loops in a synctest bubble: a lease store, an inbox, and a Temporal that follows a
// script.
type fixture struct {
	t      *testing.T
	leases *lease.Memory
	inbox  *memory.Inbox

	mu         sync.Mutex
	runs       int
	open       *wire.Execution
	acts       []string
	away       error              // the error of every request to Temporal
	fails      map[string][]error // the errors of the first requests, by action
	unanswered bool               // dispatchers do not answer
	on         func(act string)   // called before an action
	last       time.Time          // the start of the last run
}

func newFixture(t *testing.T) *fixture {
	return &fixture{
		t: t, leases: lease.NewMemory(), fails: map[string][]error{},
		inbox: memory.New(func(context.Context, inbox.Name, inbox.Delivery) inbox.Outcome {
			return inbox.Outcome{Result: inbox.Done}
		}),
	}
}

// begin records an action and returns its scripted error. Without an error it returns with the lock held.
func (f *fixture) begin(act, detail string) error {
	f.mu.Lock()
	on := f.on
	f.mu.Unlock()
	if on != nil {
		on(act)
	}
	f.mu.Lock()
	if act != "describe" && act != "detach" {
		f.acts = append(f.acts, strings.TrimSpace(act+" "+detail))
	}
	err := f.away
	if script := f.fails[act]; err == nil && len(script) > 0 {
		err, f.fails[act] = script[0], script[1:]
	}
	if err != nil {
		f.mu.Unlock()
	}
	return err
}

func (f *fixture) Describe(context.Context, inbox.Name) (*wire.Execution, error) {
	if err := f.begin("describe", ""); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	if f.open == nil {
		return nil, nil
	}
	open := *f.open
	if open.Memo != nil {
		memo := *open.Memo
		open.Memo = &memo
	}
	return &open, nil
}

func (f *fixture) Start(_ context.Context, n inbox.Name, o inbox.Owner,
	workers []dispatchtype.RegisteredWorker) (string, error) {
	if err := f.begin("start", fmt.Sprintf("%s/%d", o.Holder, o.Epoch)); err != nil {
		return "", err
	}
	defer f.mu.Unlock()
	if f.open != nil {
		return "", remote.ErrOpen
	}
	if !f.last.IsZero() && time.Since(f.last) < time.Second {
		return "", remote.ErrTooSoon
	}
	require.NotEmpty(f.t, workers)
	f.put(&wire.Memo{Name: n, Owner: o.Holder, Epoch: o.Epoch, Interpreter: 1})
	return f.open.RunID, nil
}

func (f *fixture) Detach(context.Context, inbox.Name) {
	if f.begin("detach", "") == nil {
		f.mu.Unlock()
	}
}

// put opens a dispatcher.
func (f *fixture) put(memo *wire.Memo) {
	f.runs++
	f.last = time.Now()
	f.open = &wire.Execution{
		WorkflowID: name.DispatcherID(), RunID: fmt.Sprintf("run-%d", f.runs), Type: wire.WorkflowType,
		TaskQueue: name.TaskQueue, Memo: memo,
	}
}

func (f *fixture) Adopt(ctx context.Context, n inbox.Name, runID string, o inbox.Owner) (dispatchtype.State, error) {
	if err := f.begin("adopt", fmt.Sprintf("%s %s/%d", runID, o.Holder, o.Epoch)); err != nil {
		return dispatchtype.State{}, err
	}
	if ctx.Err() != nil {
		f.mu.Unlock()
		return dispatchtype.State{}, ctx.Err()
	}
	if f.unanswered {
		f.mu.Unlock()
		select {
		case <-ctx.Done():
			return dispatchtype.State{}, ctx.Err()
		case <-time.After(10 * time.Second):
			return dispatchtype.State{}, remote.ErrUnanswered
		}
	}
	defer f.mu.Unlock()
	switch {
	case f.open == nil || f.open.RunID != runID:
		return dispatchtype.State{}, remote.ErrGone
	case o.Epoch <= f.open.Memo.Epoch:
		return dispatchtype.State{}, remote.ErrFenced
	}
	f.open.Memo = &wire.Memo{Name: n, Owner: o.Holder, Epoch: o.Epoch, Interpreter: 1}
	return dispatchtype.State{Name: n, Owner: o.Holder, Epoch: o.Epoch}, nil
}

func (f *fixture) Ask(_ context.Context, _ inbox.Name, runID string, o inbox.Owner) error {
	if err := f.begin("ask", runID); err != nil {
		return err
	}
	defer f.mu.Unlock()
	switch {
	case f.unanswered:
		return remote.ErrUnanswered
	case f.open == nil || f.open.RunID != runID:
		return remote.ErrGone
	case f.open.Memo.Epoch != o.Epoch:
		return remote.ErrFenced
	}
	return nil
}

func (f *fixture) Terminate(_ context.Context, _ inbox.Name, runID, reason string) error {
	if err := f.begin("terminate", runID); err != nil {
		return err
	}
	defer f.mu.Unlock()
	require.NotEmpty(f.t, reason)
	if f.open == nil || f.open.RunID != runID {
		return remote.ErrGone
	}
	f.open = nil
	return nil
}

func (f *fixture) Ring(context.Context, inbox.Name) error {
	if err := f.begin("ring", ""); err != nil {
		return err
	}
	f.mu.Unlock()
	return nil
}

// leaseStore is the lease store as one process sees it, with failures.
type leaseStore struct {
	lease.Store
	mu       sync.Mutex
	away     error
	refused  error // the error of every write, while reads succeed
	unread   error // the error of every read
	failed   time.Time
	lost     bool   // the answer of the next acquisition is lost
	acquired func() // called after an acquisition, before its answer arrives
}

func (s *leaseStore) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = true
}

func (s *leaseStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away, s.failed = err, time.Now()
}

// refuse makes the store refuse writes, as Redis does to a user who lacks the right to a command. nil ends that.
func (s *leaseStore) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = err
}

// failReads makes the store refuse reads.
func (s *leaseStore) failReads(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread = err
}

func (s *leaseStore) Get(ctx context.Context, key string) (lease.Entry, error) {
	s.mu.Lock()
	err := s.unread
	s.mu.Unlock()
	if err != nil {
		return lease.Entry{}, err
	}
	return s.Store.Get(ctx, key)
}

// refusal returns the error of a write.
func (s *leaseStore) refusal() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.away, s.refused)
}

func (s *leaseStore) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.away
}

func (s *leaseStore) Acquire(ctx context.Context, key, holder string, value []byte,
	t lease.Lifetime) (lease.Entry, *lease.Entry, error) {
	if err := s.failure(); err != nil {
		return lease.Entry{}, nil, err
	}
	if err := s.refusal(); err != nil {
		// A lease in force is found before anything is written.
		if e, found := s.Get(ctx, key); found == nil && e.State == lease.Held {
			return lease.Entry{}, nil, &lease.HeldError{Entry: e}
		}
		return lease.Entry{}, nil, err
	}
	got, before, err := s.Store.Acquire(ctx, key, holder, value, t)
	if err == nil && s.acquired != nil {
		s.acquired()
	}
	if ctx.Err() != nil {
		return lease.Entry{}, nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost {
		s.lost = false
		return lease.Entry{}, nil, errors.New("the answer was lost")
	}
	return got, before, err
}

func (s *leaseStore) Renew(ctx context.Context, key, token string, value []byte,
	t lease.Lifetime) (lease.Entry, error) {
	if err := s.refusal(); err != nil {
		return lease.Entry{}, err
	}
	return s.Store.Renew(ctx, key, token, value, t)
}

func (s *leaseStore) Resign(ctx context.Context, key, token string) error {
	if err := s.refusal(); err != nil {
		return err
	}
	return s.Store.Resign(ctx, key, token)
}

// beat writes the heartbeat of a process.
func (f *fixture) beat(id string) {
	key, lifetime := wire.WorkerKey(id), dispatchtype.Timing{}.WithDefaults().Worker()
	_, _, err := f.leases.Acquire(f.t.Context(), key, id, nil, lifetime)
	if held, ok := errors.AsType[*lease.HeldError](err); ok {
		_, err = f.leases.Renew(f.t.Context(), key, held.Entry.Token, nil, lifetime)
	}
	require.NoError(f.t, err)
}

// process is the loop of one process, and the events that it reported.
type process struct {
	*owner.Loop
	store       *leaseStore
	requestStop func() // does not wait
	stop        func() // resigns and waits
	crash       func() // ends without resigning

	ready chan struct{}
	mu    sync.Mutex
	seen  events
}

// events are the reported events of a loop.
type events struct {
	joined     int
	changes    []dispatchtype.OwnerChange
	gaps       []time.Duration
	failures   []error
	terminated []dispatchtype.Termination
	errors     int
	active     int
	foreign    []dispatchtype.ForeignWorkflow
	ours       int // calls of NotForeign
}

// events returns a copy of the events so far.
func (p *process) events() events {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

func (f *fixture) process(id string) *process {
	p := &process{store: &leaseStore{Store: f.leases}, ready: make(chan struct{})}
	timing := dispatchtype.Timing{}.WithDefaults()
	p.Loop = owner.New(&owner.Process{
		ServerID: id, Leases: p.store, Inbox: f.inbox, Temporal: f, Timing: timing,
		MayOwn: func(ctx context.Context, _ inbox.Name) error {
			select {
			case <-p.ready:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
		StoreFailed: func(within time.Duration) bool {
			p.store.mu.Lock()
			defer p.store.mu.Unlock()
			return p.store.away != nil || !p.store.failed.IsZero() && time.Since(p.store.failed) < within
		},
		Workers: func(inbox.Name) []dispatchtype.RegisteredWorker {
			return []dispatchtype.RegisteredWorker{{ServerID: id}}
		},
		Pace: rate.NewLimiter(500, 200), Slots: make(chan struct{}, 32), Observer: p, Log: slog.New(slog.DiscardHandler),
	}, name)
	return p
}

// start runs a process. The cleanup stops it unless it has crashed.
func (f *fixture) start(id string) *process {
	p := f.process(id)
	close(p.ready)
	p.run(f)
	return p
}

// pair starts a, which owns the dispatcher, and then b, which serves it.
func (f *fixture) pair() (a, b *process) {
	a = f.start("a")
	advance(time.Second)
	b = f.start("b")
	advance(time.Second)
	return a, b
}

func (p *process) run(f *fixture) {
	ctx, cancel := context.WithCancel(f.t.Context())
	over := make(chan struct{})
	p.requestStop = cancel
	go func() {
		defer close(over)
		p.Run(ctx)
	}()
	p.stop = sync.OnceFunc(func() { cancel(); <-over })
	p.crash = func() {
		p.store.fail(errors.New("crashed")) // so that it cannot resign
		cancel()
		<-over
	}
	f.t.Cleanup(p.stop)
}

func (p *process) note(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

func (p *process) Joined(inbox.Name) { p.note(func() { p.seen.joined++ }) }

func (p *process) Changed(c dispatchtype.OwnerChange, gap time.Duration) {
	p.note(func() { p.seen.changes, p.seen.gaps = append(p.seen.changes, c), append(p.seen.gaps, gap) })
}

func (p *process) Failed(_ inbox.Name, err error) {
	p.note(func() { p.seen.failures = append(p.seen.failures, err) })
}

func (p *process) Terminated(t dispatchtype.Termination, err error) {
	p.note(func() {
		if err != nil {
			p.seen.errors++
		} else {
			p.seen.terminated = append(p.seen.terminated, t)
		}
	})
}

func (p *process) Foreign(f dispatchtype.ForeignWorkflow) {
	p.note(func() { p.seen.foreign = append(p.seen.foreign, f) })
}

func (p *process) NotForeign(inbox.Name) { p.note(func() { p.seen.ours++ }) }

func (p *process) Active(_ inbox.Name, owned bool) {
	p.note(func() {
		if owned {
			p.seen.active++
		} else {
			p.seen.active--
		}
	})
}

func (p *process) outcomes() []dispatchtype.Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []dispatchtype.Outcome
	for _, c := range p.seen.changes {
		list = append(list, c.Outcome)
	}
	return list
}

// advance advances the bubble's clock.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (f *fixture) actions() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	did := f.acts
	f.acts = nil
	return did
}

func (f *fixture) runID() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	require.NotNil(f.t, f.open)
	return f.open.RunID
}

func (f *fixture) memo() wire.Memo {
	f.mu.Lock()
	defer f.mu.Unlock()
	require.NotNil(f.t, f.open)
	return *f.open.Memo
}

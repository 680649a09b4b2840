package owner_test

import (
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

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/inbox/memory"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/owner"
	"github.com/signalbox-dev/signalbox/dispatch/internal/pace"
	"github.com/signalbox-dev/signalbox/dispatch/internal/remote"
	"github.com/signalbox-dev/signalbox/dispatch/internal/terms"
	"github.com/signalbox-dev/signalbox/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var name = inbox.Name{Project: "shop", TaskQueue: "orders"}

// world is everything outside the loops, in a bubble: a store of leases, an inbox, and a Temporal that follows a script.
type world struct {
	t      *testing.T
	leases *lease.Memory
	inbox  *memory.Inbox

	mu    sync.Mutex
	runs  int
	open  *contract.Execution
	acts  []string
	away  error                     // what Temporal answers to everything
	fails map[string][]error        // what it answers first, by act
	mute  bool                      // dispatchers do not answer
	on    func(act string)          // called before an act
	last  time.Time                 // when a run was started last
	storm map[string]*storeOfLeases // what each process sees of the store
}

func newWorld(t *testing.T) *world {
	return &world{
		t: t, leases: lease.NewMemory(), fails: map[string][]error{}, storm: map[string]*storeOfLeases{},
		inbox: memory.New(func(context.Context, inbox.Name, inbox.Delivery) inbox.Outcome {
			return inbox.Outcome{Result: inbox.Done}
		}),
	}
}

// begin notes an act and returns what the script says of it. It returns with the lock held where there is nothing to say.
func (w *world) begin(act, detail string) error {
	w.mu.Lock()
	on := w.on
	w.mu.Unlock()
	if on != nil {
		on(act)
	}
	w.mu.Lock()
	if act != "describe" {
		w.acts = append(w.acts, strings.TrimSpace(act+" "+detail))
	}
	err := w.away
	if script := w.fails[act]; err == nil && len(script) > 0 {
		err, w.fails[act] = script[0], script[1:]
	}
	if err != nil {
		w.mu.Unlock()
	}
	return err
}

func (w *world) Describe(context.Context, inbox.Name) (*contract.Execution, error) {
	if err := w.begin("describe", ""); err != nil {
		return nil, err
	}
	defer w.mu.Unlock()
	if w.open == nil {
		return nil, nil
	}
	open := *w.open
	if open.Memo != nil {
		memo := *open.Memo
		open.Memo = &memo
	}
	return &open, nil
}

func (w *world) Start(_ context.Context, n inbox.Name, o inbox.Owner, workers []contract.Worker) (string, error) {
	if err := w.begin("start", fmt.Sprintf("%s/%d", o.Holder, o.Epoch)); err != nil {
		return "", err
	}
	defer w.mu.Unlock()
	if w.open != nil {
		return "", remote.ErrOpen
	}
	if !w.last.IsZero() && time.Since(w.last) < time.Second {
		return "", remote.ErrTooSoon
	}
	require.NotEmpty(w.t, workers)
	w.put(&contract.Memo{Name: n, Owner: o.Holder, Epoch: o.Epoch, Interpreter: 1})
	return w.open.RunID, nil
}

// put opens a dispatcher.
func (w *world) put(memo *contract.Memo) {
	w.runs++
	w.last = time.Now()
	w.open = &contract.Execution{
		WorkflowID: name.DispatcherID(), RunID: fmt.Sprintf("run-%d", w.runs), Type: contract.WorkflowType, TaskQueue: name.TaskQueue, Memo: memo,
	}
}

func (w *world) Adopt(ctx context.Context, n inbox.Name, runID string, o inbox.Owner) (contract.State, error) {
	if err := w.begin("adopt", fmt.Sprintf("%s %s/%d", runID, o.Holder, o.Epoch)); err != nil {
		return contract.State{}, err
	}
	if ctx.Err() != nil {
		w.mu.Unlock()
		return contract.State{}, ctx.Err()
	}
	if w.mute {
		w.mu.Unlock()
		select {
		case <-ctx.Done():
			return contract.State{}, ctx.Err()
		case <-time.After(10 * time.Second):
			return contract.State{}, remote.ErrUnanswered
		}
	}
	defer w.mu.Unlock()
	switch {
	case w.open == nil || w.open.RunID != runID:
		return contract.State{}, remote.ErrGone
	case o.Epoch <= w.open.Memo.Epoch:
		return contract.State{}, remote.ErrFenced
	}
	w.open.Memo = &contract.Memo{Name: n, Owner: o.Holder, Epoch: o.Epoch, Interpreter: 1}
	return contract.State{Name: n, Owner: o.Holder, Epoch: o.Epoch}, nil
}

func (w *world) Ask(_ context.Context, _ inbox.Name, runID string, o inbox.Owner) error {
	if err := w.begin("ask", runID); err != nil {
		return err
	}
	defer w.mu.Unlock()
	switch {
	case w.mute:
		return remote.ErrUnanswered
	case w.open == nil || w.open.RunID != runID:
		return remote.ErrGone
	case w.open.Memo.Epoch != o.Epoch:
		return remote.ErrFenced
	}
	return nil
}

func (w *world) Terminate(_ context.Context, _ inbox.Name, runID, reason string) error {
	if err := w.begin("terminate", runID); err != nil {
		return err
	}
	defer w.mu.Unlock()
	require.NotEmpty(w.t, reason)
	if w.open == nil || w.open.RunID != runID {
		return remote.ErrGone
	}
	w.open = nil
	return nil
}

func (w *world) Ring(context.Context, inbox.Name) error {
	if err := w.begin("ring", ""); err != nil {
		return err
	}
	w.mu.Unlock()
	return nil
}

// storeOfLeases is what one process sees of the store.
type storeOfLeases struct {
	lease.Store
	mu     sync.Mutex
	away   error
	failed time.Time
	lost   bool   // the answer of the next acquisition is
	won    func() // called when an acquisition has won, before its answer arrives
}

func (s *storeOfLeases) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = true
}

func (s *storeOfLeases) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away, s.failed = err, time.Now()
}

func (s *storeOfLeases) trouble() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.away
}

func (s *storeOfLeases) Acquire(ctx context.Context, key, holder string, value []byte, t lease.Terms) (lease.Entry, *lease.Entry, error) {
	if err := s.trouble(); err != nil {
		return lease.Entry{}, nil, err
	}
	got, before, err := s.Store.Acquire(ctx, key, holder, value, t)
	if err == nil && s.won != nil {
		s.won()
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

func (s *storeOfLeases) Renew(ctx context.Context, key, token string, value []byte, t lease.Terms) (lease.Entry, error) {
	if err := s.trouble(); err != nil {
		return lease.Entry{}, err
	}
	return s.Store.Renew(ctx, key, token, value, t)
}

func (s *storeOfLeases) Resign(ctx context.Context, key, token string) error {
	if err := s.trouble(); err != nil {
		return err
	}
	return s.Store.Resign(ctx, key, token)
}

// process is one process's loop, and what it told.
type process struct {
	*owner.Loop
	store *storeOfLeases
	tell  func() // to stop, without waiting
	stop  func() // in an orderly way
	crash func() // nothing is heard of it any more

	ready chan struct{}
	mu    sync.Mutex
	tale  tale
}

// tale is what a loop told.
type tale struct {
	joined     int
	changes    []terms.OwnerChange
	gaps       []time.Duration
	failures   []error
	terminated []terms.Termination
	errors     int
	active     int
	foreign    []terms.Foreign
	ours       int // how often it was reported that the ID is not taken
}

// told returns a copy of what was told so far.
func (p *process) told() tale {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tale
}

func (w *world) process(id string) *process {
	p := &process{store: &storeOfLeases{Store: w.leases}, ready: make(chan struct{})}
	timing := terms.Timing{}.WithDefaults()
	p.Loop = owner.New(&owner.Process{
		ServerID: id, Leases: p.store, Inbox: w.inbox, Temporal: w, Timing: timing,
		Fit: func(ctx context.Context, _ inbox.Name) error {
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
		Workers: func(inbox.Name) []contract.Worker { return []contract.Worker{{ServerID: id}} },
		Pace:    pace.NewLimit(500, 200), Slots: make(chan struct{}, 32), Observer: p, Log: slog.New(slog.DiscardHandler),
	}, name)
	return p
}

// start runs a process. Its end is orderly unless it crashes.
func (w *world) start(id string) *process {
	p := w.process(id)
	close(p.ready)
	p.run(w)
	return p
}

func (p *process) run(w *world) {
	ctx, cancel := context.WithCancel(w.t.Context())
	over := make(chan struct{})
	p.tell = cancel
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
	w.t.Cleanup(p.stop)
}

func (p *process) note(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

func (p *process) Joined(inbox.Name) { p.note(func() { p.tale.joined++ }) }

func (p *process) Changed(c terms.OwnerChange, gap time.Duration) {
	p.note(func() { p.tale.changes, p.tale.gaps = append(p.tale.changes, c), append(p.tale.gaps, gap) })
}

func (p *process) Failed(_ inbox.Name, err error) {
	p.note(func() { p.tale.failures = append(p.tale.failures, err) })
}

func (p *process) Terminated(t terms.Termination, err error) {
	p.note(func() {
		if err != nil {
			p.tale.errors++
		} else {
			p.tale.terminated = append(p.tale.terminated, t)
		}
	})
}

func (p *process) Foreign(f terms.Foreign) {
	p.note(func() { p.tale.foreign = append(p.tale.foreign, f) })
}

func (p *process) NotForeign(inbox.Name) { p.note(func() { p.tale.ours++ }) }

func (p *process) Active(_ inbox.Name, owned bool) {
	p.note(func() {
		if owned {
			p.tale.active++
		} else {
			p.tale.active--
		}
	})
}

func (p *process) outcomes() []terms.Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []terms.Outcome
	for _, c := range p.tale.changes {
		list = append(list, c.Outcome)
	}
	return list
}

// pass lets time go by in the bubble.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (w *world) did() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	did := w.acts
	w.acts = nil
	return did
}

func (w *world) runID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	require.NotNil(w.t, w.open)
	return w.open.RunID
}

func (w *world) memo() contract.Memo {
	w.mu.Lock()
	defer w.mu.Unlock()
	require.NotNil(w.t, w.open)
	return *w.open.Memo
}

package batch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	here = project.Default
	// soon bounds operations that take milliseconds on an idle machine.
	soon = time.Minute
)

// workflows resolves one short name.
type workflows struct{}

func (workflows) Resolve(_ context.Context, _, name string) (string, error) {
	if name != "hello" && name != "examples/hello" {
		return "", apperror.New(apperror.NotFound, apperror.WorkflowNotFound, "workflow %q does not exist", name)
	}
	return "examples/hello", nil
}

// Get returns the workflow as published.
func (w workflows) Get(ctx context.Context, projectName, name string) (workflow.Workflow, error) {
	full, err := w.Resolve(ctx, projectName, name)
	return workflow.Workflow{Project: projectName, Name: full, State: workflow.StatePublished}, err
}

// call is one call of controls.
type call struct{ actor, action, run, reason, requestID string }

// controls replaces the service of runs. A run that is not in status is open.
type controls struct {
	mu     sync.Mutex
	calls  []call
	status map[string]run.Status
	// answer returns the result of a call; nil succeeds.
	answer func(c call) error
	ready  error
	// made are the runs that replays started, by request ID.
	made map[string]string
}

func newControls() *controls {
	return &controls{status: map[string]run.Status{}, made: map[string]string{}}
}

func (c *controls) act(ctx context.Context, action, id, reason, requestID string) error {
	actor, _ := auth.ActorFrom(ctx)
	if err := auth.Require(ctx, here, auth.Operator); err != nil {
		return err
	}
	made := call{actor.Kind + " " + actor.Name, action, id, reason, requestID}
	c.mu.Lock()
	c.calls = append(c.calls, made)
	answer := c.answer
	c.mu.Unlock()
	if answer != nil {
		return answer(made)
	}
	return nil
}

func (c *controls) end(id string, status run.Status) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if was, ended := c.status[id]; ended {
		return apperror.New(apperror.Refused, apperror.RunEnded, "run %s has ended already: it is %s", id, was)
	}
	c.status[id] = status
	return nil
}

func (c *controls) Ready(context.Context, string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready
}

func (c *controls) Get(_ context.Context, _, id string) (run.Run, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return run.Run{ID: id, Status: c.status[id]}, nil
}

func (c *controls) Cancel(ctx context.Context, _, id, reason string) (run.Run, error) {
	if err := c.act(ctx, "cancel", id, reason, ""); err != nil {
		return run.Run{}, err
	}
	return run.Run{}, c.end(id, run.Canceled)
}

func (c *controls) Terminate(ctx context.Context, _, id, reason string) (run.Run, error) {
	if err := c.act(ctx, "terminate", id, reason, ""); err != nil {
		return run.Run{}, err
	}
	return run.Run{}, c.end(id, run.Terminated)
}

func (c *controls) Replay(ctx context.Context, req batch.ReplayRequest) (string, error) {
	if err := c.act(ctx, "replay", req.RunID, req.Reason, req.RequestID); err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.made[req.RequestID]; !known {
		c.made[req.RequestID] = fmt.Sprintf("new-%s-%d", req.RunID, len(c.made))
	}
	return c.made[req.RequestID], nil
}

func (c *controls) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

func (c *controls) done() []call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]call{}, c.calls...)
}

// platform is a batch service on a database of its own.
type platform struct {
	*batch.Service

	store    *storetest.Plain
	controls *controls
	ctx      context.Context // the test's, with an actor
	wake     func()
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	s, err := storetest.Open(t.Context(), t,
		store.Options{Driver: store.SQLite, DSN: storetest.SQLite(t), AutoMigrate: true, CallTimeout: time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop(context.WithoutCancel(t.Context()))) })
	require.NoError(t, s.Start(t.Context()))
	p := &platform{store: s, controls: newControls(), wake: func() {}}
	p.ctx = auth.WithActor(t.Context(), auth.Actor{Kind: auth.KindToken, Name: "ada"})
	p.Service = batch.NewService(s.Batches(), workflows{}, func() { p.wake() }, time.Now)
	return p
}

// run starts a runner, which ends with the test or when stop is called.
func (p *platform) run(t *testing.T) (stop func()) {
	t.Helper()
	r := batch.NewRunner(p.store.Batches(), p.controls, time.Now)
	p.wake = r.Wake
	require.NoError(t, r.Start(p.ctx))
	stop = sync.OnceFunc(func() { require.NoError(t, r.Stop(context.WithoutCancel(p.ctx))) })
	t.Cleanup(stop)
	return stop
}

func (p *platform) start(t *testing.T, req batch.StartRequest) batch.Batch {
	t.Helper()
	req.Project = here
	if req.Reason == "" {
		req.Reason = "stale"
	}
	b, created, err := p.Start(p.ctx, req)
	require.NoError(t, err)
	require.True(t, created)
	return b
}

func (p *platform) await(t *testing.T, id string, want func(batch.Batch) bool) batch.Batch {
	t.Helper()
	var b batch.Batch
	require.Eventually(t, func() bool {
		var err error
		b, err = p.Get(p.ctx, here, id)
		return err == nil && want(b)
	}, soon, 5*time.Millisecond)
	return b
}

// completed reports whether each item has a result. The runs that the controls start have no rows.
func completed(b batch.Batch) bool { return !b.EndedAt.IsZero() }

func (p *platform) items(t *testing.T, id string, status batch.ItemStatus) []batch.Item {
	t.Helper()
	list, err := p.Items(p.ctx, batch.ItemFilter{Project: here, Batch: id, Status: status, Limit: 20_000})
	require.NoError(t, err)
	return list
}

func names(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("r%04d", i+1)
	}
	return ids
}

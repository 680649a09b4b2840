package start_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/start"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

func TestStartHandsTheRunToTheEngine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	old := b.publish(t, "examples/hello", "1.0.0")
	newest := b.publish(t, "examples/hello", "1.1.0")
	var given run.Run
	b.engine.start = func(ctx context.Context, r run.Run) (string, error) {
		_, bounded := ctx.Deadline()
		require.True(t, bounded)
		require.Equal(t, run.QueuedStarting, b.row(t, r.ID).QueuedReason, "the row is there before the execution")
		given = r
		b.advance(time.Second)
		return "execution-1", nil
	}
	req := request()
	req.Workflow = "hello"
	r, created, err := b.Start(b.ctx, req)
	require.NoError(t, err)
	require.True(t, created)
	want := run.Run{
		ID: r.ID, Project: here, Workflow: "examples/hello", Version: "1.1.0", DocumentHash: newest.Hash, Status: run.Queued,
		QueuedReason: run.QueuedWorker, StatusAt: b.clock(), RequestID: r.ID, Trigger: run.TriggerAPI, Actor: "ada",
		CreatedAt: b.clock().Add(-time.Second), Input: req.Input, Sequence: 2, Interpreter: 7, ExecutionID: "execution-1",
	}
	require.Equal(t, want, r)
	require.Equal(t, want, b.row(t, r.ID))
	require.Equal(t, []any{r.ID, newest.Hash, string(req.Input), 7},
		[]any{given.ID, given.DocumentHash, string(given.Input), given.Interpreter})
	require.Equal(t, []string{"check", "start " + r.ID}, b.engine.called())
	require.Equal(t, []string{"default queued", "started"}, b.metrics.lines)

	req.Version = "1.0.0"
	r, _, err = b.Start(b.ctx, req)
	require.NoError(t, err)
	require.Equal(t, []string{"1.0.0", old.Hash}, []string{r.Version, r.DocumentHash})
	entries, err := b.store.ListAudit(b.ctx, audit.Filter{Subject: r.ID, Limit: 10})
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, []string{audit.RunStart, "ada"}, []string{entries[0].Action, entries[0].Actor.Name})
	require.JSONEq(t, fmt.Sprintf(`{"workflow": "examples/hello", "version": "1.0.0", "requestId": %q}`, r.ID),
		string(entries[0].Detail))
}

func TestStartRefusesInvalidRequests(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	b.publish(t, "examples/paused", "1.0.0")
	b.publish(t, "a/twice", "1.0.0")
	b.publish(t, "b/twice", "1.0.0")
	_, err := b.workflows.SetPaused(b.ctx, here, "paused", true, "bad data")
	require.NoError(t, err)
	_, _, err = b.workflows.SaveDraft(b.ctx, here, workflow.Submission{Source: "document: {dsl: 1.0.3, namespace: examples, name: draft, version: 1.0.0}\ndo: [{a: {set: {n: 1}}}]"})
	require.NoError(t, err)
	tests := []struct {
		name   string
		change func(*start.Request)
		class  apperror.Class
		reason string
		says   string
	}{
		{"no project", func(r *start.Request) {
			r.Project = "none"
		}, apperror.NotFound, apperror.ProjectNotFound, `"none"`},
		{"no workflow", func(r *start.Request) {
			r.Workflow = ""
		}, apperror.Invalid, apperror.InvalidArgument, "no workflow named"},
		{"unknown workflow", func(r *start.Request) {
			r.Workflow = "a/b"
		}, apperror.NotFound, apperror.WorkflowNotFound, `"a/b"`},
		{"unknown short name", func(r *start.Request) {
			r.Workflow = "b"
		}, apperror.NotFound, apperror.WorkflowNotFound, `"b"`},
		{"ambiguous", func(r *start.Request) {
			r.Workflow = "twice"
		}, apperror.Invalid, apperror.WorkflowAmbiguous, "a/twice, b/twice"},
		{"unknown version", func(r *start.Request) {
			r.Version = "2.0.0"
		}, apperror.NotFound, apperror.VersionNotFound, "2.0.0"},
		{"only a draft", func(r *start.Request) {
			r.Workflow = "draft"
		}, apperror.Refused, apperror.WorkflowNotPublished, "examples/draft"},
		{"paused", func(r *start.Request) {
			r.Workflow = "paused"
		}, apperror.Refused, apperror.WorkflowPaused, "(bad data)"},
		{"no input", func(r *start.Request) {
			r.Input = nil
		}, apperror.Invalid, apperror.InvalidInput, "examples/hello@1.0.0"},
		{"not JSON", func(r *start.Request) {
			r.Input = json.RawMessage(`{"name": `)
		}, apperror.Invalid, apperror.InvalidInput, "not JSON"},
		{"two values", func(r *start.Request) {
			r.Input = json.RawMessage(`{"name": "a"} {}`)
		}, apperror.Invalid, apperror.InvalidInput, "not JSON"},
		{"empty input", func(r *start.Request) {
			r.Input = json.RawMessage{}
		}, apperror.Invalid, apperror.InvalidInput, "not JSON"},
		{"against the schema", func(r *start.Request) {
			r.Input = json.RawMessage(`{"name": 7}`)
		}, apperror.Invalid, apperror.InvalidInput, "/name"},
		{"too many generations", func(r *start.Request) { r.Lineage.Generation = 33 },
			apperror.Refused, apperror.GenerationLimit, "33 starts away"},
		{"too large", func(r *start.Request) { r.Input = json.RawMessage(`"` + strings.Repeat("a", maxInput-1) + `"`) },
			apperror.Exhausted, apperror.InputTooLarge, "201 bytes"},
		{"request ID of a child", func(r *start.Request) {
			r.RequestID = "child:k"
		}, apperror.Invalid, apperror.InvalidArgument, `begins with "child:"`},
		{"request ID", func(r *start.Request) {
			r.RequestID = strings.Repeat("r", 201)
		}, apperror.Invalid, apperror.InvalidArgument, "201 bytes"},
	}
	for _, tt := range tests {
		req := request()
		tt.change(&req)
		_, created, err := b.Start(b.ctx, req)
		require.False(t, created, tt.name)
		requireError(t, err, tt.class, tt.reason, tt.says)
		require.Empty(t, b.engine.called(), "%s: no call of the engine", tt.name)
	}
	require.Empty(t, b.rows(t))
	require.Empty(t, b.audited(t))
	require.Empty(t, b.metrics.lines)

	// Values at the limits are accepted.
	req := request()
	req.Input = json.RawMessage(`{"name":"` + strings.Repeat("a", maxInput-11) + `"}`)
	req.RequestID = strings.Repeat("r", 200)
	require.Len(t, req.Input, maxInput)
	_, created, err := b.Start(b.ctx, req)
	require.NoError(t, err)
	require.True(t, created)

	// A run may start another with a request ID that is reserved from callers.
	req.RequestID, req.Trigger, req.Parent = "child:k", run.TriggerParent, run.Parent{RunID: "r", Key: "k", Depth: 1}
	_, created, err = b.Start(b.ctx, req)
	require.NoError(t, err)
	require.True(t, created)
}

func TestStartWhileTheEngineIsUnavailableWritesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	b.engine.check = func(context.Context) error { return unavailable() }
	_, created, err := b.Start(b.ctx, request())
	requireError(t, err, apperror.Unavailable, apperror.EngineUnavailable, "does not answer")
	require.False(t, created)
	require.Empty(t, b.rows(t))
	require.Empty(t, b.audited(t))
	require.Equal(t, []string{"check"}, b.engine.called())
}

func TestStartThatDefinitelyFailedLeavesNoRow(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{
		"refused":     apperror.New(apperror.Refused, apperror.EngineRefused, "no permission"),
		"unavailable": unavailable(),
		"exhausted":   apperror.New(apperror.Exhausted, apperror.EngineRefused, "over its limits"),
		"no fault":    errors.New("cannot encode"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.publish(t, "examples/hello", "1.0.0")
			b.engine.start = func(context.Context, run.Run) (string, error) { return "", failure }
			req := request()
			req.RequestID = "once"
			_, created, err := b.Start(b.ctx, req)
			require.Equal(t, failure, err)
			require.False(t, created)
			require.Empty(t, b.rows(t))
			require.Equal(t, []string{"run.start", "run.start_refused " + failure.Error()}, b.audited(t))
			require.Empty(t, b.metrics.lines)

			b.engine.start = nil
			_, created, err = b.Start(b.ctx, req)
			require.NoError(t, err)
			require.True(t, created, "the request ID is free again")
		})
	}
}

// TestRefusedInputNamesTheStandardError: the fault's facts contain the fields of an error of the language.
func TestRefusedInputNamesTheStandardError(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	req := request()
	req.Input = json.RawMessage(`{"name": 7}`)
	_, _, err := b.Start(b.ctx, req)
	f, ok := apperror.From(err)
	require.True(t, ok)
	require.Equal(t, map[string]string{"type": dsl.ErrorTypeValidation, "status": "400", "pointer": "/name"}, f.Facts)
	require.Equal(t, "input/name", f.Fields[0].Path)
}

// TestRefusalInOddBytesLeavesNoRow has Temporal answer in bytes that no database accepts as text.
func TestRefusalInOddBytesLeavesNoRow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	b.engine.start = func(context.Context, run.Run) (string, error) {
		return "", apperror.New(apperror.Refused, apperror.EngineRefused, "no\x00 \xff")
	}
	_, _, err := b.Start(b.ctx, request())
	require.True(t, apperror.Is(err, apperror.EngineRefused), "%v", err)
	require.Empty(t, b.rows(t))
	require.Equal(t, []string{"run.start", "run.start_refused no\uFFFD \uFFFD"}, b.audited(t))
}

func TestStartWithUnknownOutcomeStaysQueued(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	b.engine.start = func(context.Context, run.Run) (string, error) {
		return "", fmt.Errorf("cut: %w: %w", run.ErrUnknownOutcome, context.DeadlineExceeded)
	}
	r, created, err := b.Start(b.ctx, request())
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, []any{run.Queued, run.QueuedStarting, ""}, []any{r.Status, r.QueuedReason, r.ExecutionID})
	require.Equal(t, r, b.row(t, r.ID))
	require.Equal(t, []string{"run.start"}, b.audited(t))
	require.Equal(t, []string{"default queued"}, b.metrics.lines)
}

func TestStartWithEndedContext(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	ctx, leave := context.WithCancel(b.ctx)
	b.engine.check = func(context.Context) error {
		leave()
		return nil
	}
	_, _, err := b.Start(ctx, request())
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"check"}, b.engine.called())
	require.Empty(t, b.rows(t))
}

func TestTheSameRequestIsTheSameRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	b.publish(t, "examples/other", "1.0.0")
	req := request()
	req.RequestID = "once"
	first, created, err := b.Start(b.ctx, req)
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, "once", first.RequestID)

	// The newest version may be another one by then; a request without a version returns the stored run.
	b.publish(t, "examples/hello", "2.0.0")
	again, created, err := b.Start(b.ctx, req)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, first, again)
	req.Version = "1.0.0"
	again, created, err = b.Start(b.ctx, req)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, first, again)

	for name, change := range map[string]func(*start.Request){
		"version":  func(r *start.Request) { r.Version = "2.0.0" },
		"workflow": func(r *start.Request) { r.Workflow, r.Version = "examples/other", "" },
		"input":    func(r *start.Request) { r.Input = json.RawMessage(`{"name":"Bob"}`) },
	} {
		other := req
		change(&other)
		_, created, err = b.Start(b.ctx, other)
		require.False(t, created, name)
		requireError(t, err, apperror.Exists, apperror.RequestIDReused, first.ID)
	}
	require.Len(t, b.rows(t), 1)
	const refused = "run.start_refused the request ID belongs to another request"
	require.Equal(t, []string{"run.start", refused, refused, refused}, b.audited(t))
}

// TestRepeatedRequestReturnsItsRun repeats a request, whose response was lost, when the run could no longer be started.
func TestRepeatedRequestReturnsItsRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	req := request()
	req.RequestID, req.Workflow = "once", "hello"
	first, _, err := b.Start(b.ctx, req)
	require.NoError(t, err)
	requireSame := func(why string) {
		t.Helper()
		again, created, err := b.Start(b.ctx, req)
		require.NoError(t, err, why)
		require.False(t, created)
		require.Equal(t, first, again)
	}
	b.engine.check = func(context.Context) error { return unavailable() }
	requireSame("the engine is away")
	b.engine.check = nil
	_, err = b.workflows.SetPaused(b.ctx, here, "hello", true, "")
	require.NoError(t, err)
	requireSame("paused")

	for name, change := range map[string]func(*start.Request){
		"another request": func(r *start.Request) { r.RequestID = "twice" },
		"none":            func(r *start.Request) { r.RequestID = "" },
	} {
		other := req
		change(&other)
		_, _, err := b.Start(b.ctx, other)
		require.True(t, apperror.Is(err, apperror.WorkflowPaused), "%s: %v", name, err)
	}
	other := req
	other.Version = "9.0.0"
	_, _, err = b.Start(b.ctx, other)
	require.True(t, apperror.Is(err, apperror.WorkflowPaused), "another version is another request: %v", err)
	other = req
	other.Workflow = "ello"
	_, _, err = b.Start(b.ctx, other)
	require.True(t, apperror.Is(err, apperror.WorkflowNotFound), "%v", err)

	b.applyState(t, first.ID, 3, run.Completed)
	first = b.row(t, first.ID)
	require.NoError(t, b.workflows.Delete(b.ctx, here, "hello"))
	requireSame("deleted")
	req.Input = json.RawMessage("{")
	_, _, err = b.Start(b.ctx, req)
	require.True(t, apperror.Is(err, apperror.WorkflowNotFound), "another input is another request: %v", err)
}

// cutStore loses the database at one call.
type cutStore struct {
	run.Store
	failMark, failRemove, failGet bool
}

func (s cutStore) GetRun(ctx context.Context, project, id string) (run.Run, error) {
	if s.failGet {
		return run.Run{}, errors.New("the disk is full")
	}
	return s.Store.GetRun(ctx, project, id)
}

func (s cutStore) MarkHandedOver(ctx context.Context, id, executionID string, at time.Time) error {
	if s.failMark {
		return errors.New("the disk is full")
	}
	return s.Store.MarkHandedOver(ctx, id, executionID, at)
}

func (s cutStore) RemoveUnstarted(ctx context.Context, id string, e audit.Entry) (bool, error) {
	if s.failRemove {
		return false, errors.New("the disk is full")
	}
	return s.Store.RemoveUnstarted(ctx, id, e)
}

func TestStartWhenTheStoreFailsAfterwards(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	r, created, err := b.process(t, cutStore{Store: b.store, failMark: true}, func(*start.Options) {}).Start(b.ctx,
		request())
	require.NoError(t, err, "it was started; its row is updated later")
	require.True(t, created)
	require.Equal(t, run.QueuedStarting, r.QueuedReason)

	r, created, err = b.process(t, cutStore{Store: b.store, failGet: true}, func(*start.Options) {}).Start(b.ctx,
		request())
	require.NoError(t, err, "it was started, although its row cannot be read")
	require.True(t, created)
	require.Equal(t, run.Queued, r.Status)

	refused := apperror.New(apperror.Refused, apperror.EngineRefused, "no permission")
	b.engine.start = func(context.Context, run.Run) (string, error) { return "", refused }
	_, _, err = b.process(t, cutStore{Store: b.store, failRemove: true}, func(*start.Options) {}).Start(b.ctx, request())
	require.ErrorIs(t, err, refused)
	require.ErrorContains(t, err, "the disk is full")
	require.True(t, apperror.Is(err, apperror.EngineRefused), "the error has the reason of the refusal")
}

func TestStartNeedsTheDocument(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	empty, err := storetest.Open(b.ctx, t, store.Options{
		Driver: store.SQLite, DSN: storetest.SQLite(t), AutoMigrate: true, CallTimeout: time.Minute,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, empty.Stop(context.WithoutCancel(b.ctx))) })
	require.NoError(t, empty.Start(b.ctx))
	s := start.New(b.store, b.engine, b.workflows, documents{empty}, b.changes, start.Options{
		MaxInputBytes: maxInput, StartTimeout: startTimeout, Now: b.clock, Metrics: b.metrics,
	})
	_, _, err = s.Start(b.ctx, request())
	require.Error(t, err)
	require.Empty(t, b.engine.called())
	require.Empty(t, b.rows(t))
}

package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
)

func replay(id string) control.ReplayRequest {
	return control.ReplayRequest{Project: here, RunID: id, Reason: "once more"}
}

func TestReplayStartsTheSameAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		first := b.begin(t)
		b.bring(t, first.ID, 3, run.Failed)
		b.publish(t, "examples/hello", "2.0.0")
		r, created, err := b.Replay(b.ctx, replay(first.ID))
		require.NoError(t, err)
		require.True(t, created)
		require.Equal(t, []any{"1.0.0", first.DocumentHash, run.TriggerReplay, first.ID, "ada", string(first.Input)},
			[]any{r.Version, r.DocumentHash, r.Trigger, r.ReplayOf, r.Actor, string(r.Input)})
		require.Equal(t, r, b.row(t, r.ID))
		entries, err := b.store.ListAudit(b.ctx, audit.Filter{Subject: r.ID, Limit: 10})
		require.NoError(t, err)
		require.Len(t, entries, 1)
		require.Equal(t, []string{audit.RunReplay, "once more"}, []string{entries[0].Action, entries[0].Reason})
		require.Contains(t, string(entries[0].Detail), first.ID)

		again := replay(first.ID)
		again.Version = control.Latest
		newer, _, err := b.Replay(b.ctx, again)
		require.NoError(t, err)
		require.Equal(t, "2.0.0", newer.Version)
		require.Equal(t, []string{newer.ID, r.ID}, b.row(t, first.ID).Replays)

		of, _, err := b.Replay(b.ctx, replay(newer.ID))
		require.NoError(t, err)
		require.Equal(t, []string{newer.ID, "2.0.0"}, []string{of.ReplayOf, of.Version})
	})
}

// sealed gives originals where rows have marks.
type sealed map[string]json.RawMessage

func (s sealed) Input(_ context.Context, r run.Run) (json.RawMessage, error) {
	original, ok := s[r.ID]
	if !ok {
		return nil, errors.New("the key is gone")
	}
	return original, nil
}

const redactedInput = `{"name":"Ada","password":"` + redact.Mark + `"}`

// secretive has a run whose row shows a mark for a password.
func secretive(t *testing.T) (*bench, *control.Service, run.Run) {
	t.Helper()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	req := request()
	req.Input = json.RawMessage(redactedInput)
	r, _, err := b.Start(b.ctx, req)
	require.NoError(t, err)
	opts := b.opts
	opts.Originals = sealed{r.ID: json.RawMessage(`{"name":"Ada","password":"hunter22"}`)}
	return b, control.New(b.Service, b.store, b.engine, b.changes, opts), r
}

func TestReplayUsesTheOriginal(t *testing.T) { //nolint:tparallel // the cases look at one bench in turn
	t.Parallel()
	b, s, first := secretive(t)
	var given string
	b.engine.start = func(_ context.Context, r run.Run) (string, error) {
		given = string(r.Input)
		return "x", nil
	}
	for name, tt := range map[string]struct {
		input, patch, want string
	}{
		"unedited":       {want: `{"name":"Ada","password":"hunter22"}`},
		"an empty patch": {patch: " [\n] ", want: `{"name":"Ada","password":"hunter22"}`},
		"patched beside": {patch: `[{"op":"replace","path":"/name","value":"Bob"}]`, want: `{"name":"Bob","password":"hunter22"}`},
		"patched itself": {patch: `[{"op":"replace","path":"/password","value":"other"}]`, want: `{"name":"Ada","password":"other"}`},
		"without it":     {patch: `[{"op":"remove","path":"/password"}]`, want: `{"name":"Ada"}`},
		"a whole input":  {input: ` { "name" : "Bob" } `, want: `{"name":"Bob"}`},
	} {
		t.Run(name, func(t *testing.T) {
			req := replay(first.ID)
			if tt.input != "" {
				req.Input = json.RawMessage(tt.input)
			}
			if tt.patch != "" {
				req.Patch = json.RawMessage(tt.patch)
			}
			r, created, err := s.Replay(b.ctx, req)
			require.NoError(t, err)
			require.True(t, created)
			require.JSONEq(t, tt.want, given)
			require.Equal(t, first.ID, r.ReplayOf)
		})
	}
}

func TestRefusedReplayQuotesNothingThatIsHidden(t *testing.T) {
	t.Parallel()
	b, _, first := secretive(t)
	hidden := sealed{first.ID: json.RawMessage(`{"name":"planted-secret"}`)}
	_, err := b.workflows.Publish(b.ctx, here, "document: {dsl: 1.0.3, namespace: examples, name: hello, version: 2.0.0}\n"+
		"input: {schema: {document: {properties: {name: {type: string, pattern: '^[0-9]+$'}}}}}\ndo: [{a: {set: {n: 1}}}]\n", "ada")
	require.NoError(t, err)
	opts := b.opts
	opts.Originals = hidden
	s := control.New(b.Service, redactedRows{b.store}, b.engine, b.changes, opts)
	for _, patch := range []string{"", `[{"op":"add","path":"/x","value":1}]`} {
		req := replay(first.ID)
		req.Version, req.Patch = control.Latest, json.RawMessage(patch)
		if patch == "" {
			req.Patch = nil
		}
		_, _, err = s.Replay(b.ctx, req)
		require.True(t, fault.Is(err, fault.InvalidInput), "%v", err)
		require.ErrorContains(t, err, `"/name": does not meet "pattern"`)
		f, _ := fault.From(err)
		require.NotContains(t, f.Error()+f.Fields[0].Message, "planted")
	}
	req := request()
	req.Input = json.RawMessage(`{"name":"planted-secret"}`)
	_, _, err = b.Start(b.ctx, req)
	require.ErrorContains(t, err, "planted-secret", "whoever sends an input knows it")
}

// redactedRows are rows with marks.
type redactedRows struct{ run.Store }

func (s redactedRows) GetRun(ctx context.Context, project, id string) (run.Run, error) {
	r, err := s.Store.GetRun(ctx, project, id)
	r.Redacted = true
	return r, err
}

func TestReplayRefusesWhatWouldLeakOrLose(t *testing.T) { //nolint:tparallel // the cases look at one bench in turn
	t.Parallel()
	b, s, first := secretive(t)
	b.publish(t, "examples/other", "1.0.0")
	before := len(b.rows(t))
	for name, tt := range map[string]struct {
		change func(*control.ReplayRequest)
		class  fault.Class
		reason string
	}{
		"no reason":      {func(r *control.ReplayRequest) { r.Reason = " " }, fault.Invalid, fault.InvalidArgument},
		"a mark left in": {func(r *control.ReplayRequest) { r.Input = json.RawMessage(redactedInput) }, fault.Invalid, fault.InputRedacted},
		"a mark patched in": {func(r *control.ReplayRequest) {
			r.Patch = json.RawMessage(`[{"op":"add","path":"/x","value":"` + redact.Mark + `"}]`)
		}, fault.Invalid, fault.InputRedacted},
		"a test of a mark": {func(r *control.ReplayRequest) {
			r.Patch = json.RawMessage(`[{"op":"test","path":"/password","value":"hunter22"}]`)
		}, fault.Invalid, fault.InputRedacted},
		"both": {func(r *control.ReplayRequest) { r.Input, r.Patch = json.RawMessage(`{}`), json.RawMessage(`[]`) },
			fault.Invalid, fault.InvalidArgument},
		"an empty object is an input": {func(r *control.ReplayRequest) { r.Input = json.RawMessage(`{}`) }, fault.Invalid, fault.InvalidInput},
		"against the schema": {func(r *control.ReplayRequest) {
			r.Patch = json.RawMessage(`[{"op":"replace","path":"/name","value":7}]`)
		}, fault.Invalid, fault.InvalidInput},
		"unknown version": {func(r *control.ReplayRequest) { r.Version = "9.9.9" }, fault.NotFound, fault.VersionNotFound},
		"unknown run":     {func(r *control.ReplayRequest) { r.RunID = "none" }, fault.NotFound, fault.RunNotFound},
		"foreign project": {func(r *control.ReplayRequest) { r.Project = "elsewhere" }, fault.NotFound, fault.ProjectNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			req := replay(first.ID)
			tt.change(&req)
			_, created, err := s.Replay(b.ctx, req)
			require.False(t, created)
			requireFault(t, err, tt.class, tt.reason, "")
			require.NotContains(t, err.Error(), "hunter22")
			require.Len(t, b.rows(t), before, "no run was made")
		})
	}
	_, err := b.workflows.SetPaused(b.ctx, here, "hello", true, "bad data")
	require.NoError(t, err)
	_, _, err = s.Replay(b.ctx, replay(first.ID))
	requireFault(t, err, fault.Refused, fault.WorkflowPaused, "bad data")
	_, err = b.workflows.SetPaused(b.ctx, here, "hello", false, "")
	require.NoError(t, err)
	b.engine.check = func(context.Context) error { return unavailable() }
	_, _, err = s.Replay(b.ctx, replay(first.ID))
	requireFault(t, err, fault.Unavailable, fault.EngineUnavailable, "")
	require.Len(t, b.rows(t), before)
}

func TestReplayOfAWorkflowThatWasDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.begin(t)
	b.bring(t, first.ID, 3, run.Completed)
	require.NoError(t, b.workflows.Delete(b.ctx, here, "hello"))
	_, _, err := b.Replay(b.ctx, replay(first.ID))
	requireFault(t, err, fault.NotFound, fault.WorkflowNotFound, "examples/hello")

	// Published anew with other content, the version is another one.
	_, err = b.workflows.Publish(b.ctx, here, "document: {dsl: 1.0.3, namespace: examples, name: hello, version: 1.0.0}\ndo: [{b: {set: {n: 2}}}]", "ada")
	require.NoError(t, err)
	_, _, err = b.Replay(b.ctx, replay(first.ID))
	requireFault(t, err, fault.NotFound, fault.VersionNotFound, "published anew")
	req := replay(first.ID)
	req.Version = "1.0.0"
	r, _, err := b.Replay(b.ctx, req)
	require.NoError(t, err)
	require.NotEqual(t, first.DocumentHash, r.DocumentHash)
}

func TestReplayWithARequestID(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		first, second := b.begin(t), b.begin(t)
		req := replay(first.ID)
		req.RequestID = "once"
		r, created, err := b.Replay(b.ctx, req)
		require.NoError(t, err)
		require.True(t, created)
		again, created, err := b.Replay(b.ctx, req)
		require.NoError(t, err)
		require.False(t, created)
		require.Equal(t, r.ID, again.ID)
		require.Equal(t, []string{r.ID}, b.row(t, first.ID).Replays)

		// While nothing could be started, too: the run is there.
		b.engine.check = func(context.Context) error { return unavailable() }
		again, created, err = b.Replay(b.ctx, req)
		require.NoError(t, err)
		require.Equal(t, []any{r.ID, false}, []any{again.ID, created})
		other := req
		other.RunID = second.ID
		_, _, err = b.Replay(b.ctx, other)
		requireFault(t, err, fault.Unavailable, fault.EngineUnavailable, "")
		b.engine.check = nil

		_, _, err = b.Replay(b.ctx, other)
		requireFault(t, err, fault.Exists, fault.RequestIDReused, "once")
		start := request()
		start.RequestID = "once"
		_, _, err = b.Start(b.ctx, start)
		requireFault(t, err, fault.Exists, fault.RequestIDReused, "once")
		start.RequestID = "started"
		_, _, err = b.Start(b.ctx, start)
		require.NoError(t, err)
		req.RequestID = "started"
		_, _, err = b.Replay(b.ctx, req)
		requireFault(t, err, fault.Exists, fault.RequestIDReused, "started")
		req.RequestID = "child:k"
		_, _, err = b.Replay(b.ctx, req)
		requireFault(t, err, fault.Invalid, fault.InvalidArgument, `begins with "child:"`)
	})
}

func TestReplayInTheQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.begin(t)
	b.away()
	s := control.New(b.queueing(t, b.store), b.store, b.engine, b.changes, b.opts)
	r, created, err := s.Replay(b.ctx, replay(first.ID))
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, []string{run.QueuedEngine, first.ID}, []string{r.QueuedReason, b.row(t, r.ID).ReplayOf})
	require.Contains(t, b.audited(t), "run.replay once more")
}

// imported makes a run that another engine ran, with an input.
func (b *bench) imported(t *testing.T, id, input string) run.Run {
	t.Helper()
	r := run.Run{
		ID: id, Project: here, Workflow: "examples/hello", Version: "7", Status: run.Queued, QueuedReason: run.QueuedWorker,
		StatusAt: b.clock(), CreatedAt: b.clock(), RequestID: id, Trigger: run.TriggerImport, Input: json.RawMessage(input),
	}
	_, made, err := b.store.InsertRun(b.ctx, r, entry(b, id))
	require.NoError(t, err)
	require.True(t, made)
	b.bring(t, id, 3, run.Canceled)
	return r
}

func TestReplayOfAnImportedRun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		b.imported(t, "old", `{"name":"Ada"}`)
		named := func(id, version string) control.ReplayRequest {
			req := replay(id)
			req.Version = version
			return req
		}
		_, _, err := b.Replay(b.ctx, named("old", control.Latest))
		requireFault(t, err, fault.NotFound, fault.WorkflowNotFound, "examples/hello")
		b.publish(t, "examples/hello", "1.0.0")
		before := len(b.rows(t))
		_, _, err = b.Replay(b.ctx, replay("old"))
		requireFault(t, err, fault.Refused, fault.RunImported, "name the version of examples/hello")
		_, _, err = b.Replay(b.ctx, named("old", "7"))
		requireFault(t, err, fault.NotFound, fault.VersionNotFound, "7")
		require.Len(t, b.rows(t), before)

		r, created, err := b.Replay(b.ctx, named("old", control.Latest))
		require.NoError(t, err)
		require.True(t, created)
		require.Equal(t, []string{"1.0.0", "old", run.TriggerReplay, `{"name":"Ada"}`}, []string{r.Version, r.ReplayOf, r.Trigger, string(r.Input)})
		require.Equal(t, []string{r.ID}, b.row(t, "old").Replays)
		req := named("old", "1.0.0")
		req.Patch = json.RawMessage(`[{"op":"replace","path":"/name","value":"Bob"}]`)
		r, _, err = b.Replay(b.ctx, req)
		require.NoError(t, err)
		require.JSONEq(t, `{"name":"Bob"}`, string(r.Input))

		// A mark never becomes input.
		b.imported(t, "hidden", redactedInput)
		before = len(b.rows(t))
		req = named("hidden", control.Latest)
		_, _, err = b.Replay(b.ctx, req)
		requireFault(t, err, fault.Refused, fault.RunImported, "were not kept")
		req.Patch = json.RawMessage(`[{"op":"replace","path":"/name","value":"Bob"}]`)
		_, _, err = b.Replay(b.ctx, req)
		requireFault(t, err, fault.Refused, fault.RunImported, "replaces each mark")
		require.Len(t, b.rows(t), before)
		req.Patch = json.RawMessage(`[{"op":"replace","path":"/password","value":"once-more"}]`)
		r, _, err = b.Replay(b.ctx, req)
		require.NoError(t, err)
		require.JSONEq(t, `{"name":"Ada","password":"once-more"}`, string(r.Input))

		b.imported(t, "bare", "")
		req = named("bare", control.Latest)
		_, _, err = b.Replay(b.ctx, req)
		requireFault(t, err, fault.Refused, fault.RunImported, "its input is not here")
		req.Input = json.RawMessage(`{"name":"Eve"}`)
		_, _, err = b.Replay(b.ctx, req)
		require.NoError(t, err)
	})
}

func TestListsCanLeaveOutRunsThatWereReplayed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		first, second := b.begin(t), b.begin(t)
		again, _, err := b.Replay(b.ctx, replay(first.ID))
		require.NoError(t, err)
		for _, filter := range []run.Filter{{}, {Statuses: []run.Status{run.Queued}}, {Workflow: "examples/hello"}, {Text: "0"}} {
			filter.Project, filter.NotReplayed, filter.Limit = here, true, 10
			list, err := b.store.ListRuns(b.ctx, filter)
			require.NoError(t, err)
			var ids []string
			for _, r := range list {
				ids = append(ids, r.ID)
			}
			require.ElementsMatch(t, []string{second.ID, again.ID}, ids, "%+v", filter)
		}
	})
}

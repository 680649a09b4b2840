package start_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
	"github.com/signalbox-dev/signalbox/internal/run/start"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

func replay(id string) control.ReplayRequest {
	return control.ReplayRequest{Project: here, RunID: id, Reason: "once more"}
}

func TestReplayStartsTheSameAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		first := b.begin(t)
		b.applyState(t, first.ID, 3, run.Failed)
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

// sealedStub returns originals where rows have marks.
type sealedStub map[string]json.RawMessage

func (s sealedStub) Input(_ context.Context, r run.Run) (json.RawMessage, error) {
	original, ok := s[r.ID]
	if !ok {
		return nil, errors.New("the key is gone")
	}
	return original, nil
}

const redactedInput = `{"name":"Ada","password":"` + redact.Mark + `"}`

// newRedacted returns a run with a mark in its row in place of a password.
func newRedacted(t *testing.T) (*bench, *control.Service, run.Run) {
	t.Helper()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	req := request()
	req.Input = json.RawMessage(redactedInput)
	r, _, err := b.Start(b.ctx, req)
	require.NoError(t, err)
	originals := sealedStub{r.ID: json.RawMessage(`{"name":"Ada","password":"hunter22"}`)}
	return b, b.controlled(b.Service, b.store, originals), r
}

func TestReplayUsesTheOriginal(t *testing.T) { //nolint:tparallel // the cases use one bench in turn
	t.Parallel()
	b, s, first := newRedacted(t)
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
		"patched beside": {patch: `[{"op":"replace","path":"/name","value":"Bob"}]`,
			want: `{"name":"Bob","password":"hunter22"}`},
		"patched itself": {patch: `[{"op":"replace","path":"/password","value":"other"}]`,
			want: `{"name":"Ada","password":"other"}`},
		"without it":    {patch: `[{"op":"remove","path":"/password"}]`, want: `{"name":"Ada"}`},
		"a whole input": {input: ` { "name" : "Bob" } `, want: `{"name":"Bob"}`},
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

func TestRefusedReplayQuotesNoHiddenValue(t *testing.T) {
	t.Parallel()
	b, _, first := newRedacted(t)
	hidden := sealedStub{first.ID: json.RawMessage(`{"name":"planted-secret"}`)}
	_, err := b.workflows.Publish(b.ctx, here, workflow.Submission{Source: "document: {dsl: 1.0.3, namespace: examples, name: hello, version: 2.0.0}\n" +
		"input: {schema: {document: {properties: {name: {type: string, pattern: '^[0-9]+$'}}}}}\ndo: [{a: {set: {n: " +
		"1}}}]\n"}, "ada")
	require.NoError(t, err)
	s := b.controlled(b.Service, redactedRows{b.store}, hidden)
	for _, patch := range []string{"", `[{"op":"add","path":"/x","value":1}]`} {
		req := replay(first.ID)
		req.Version, req.Patch = control.Latest, json.RawMessage(patch)
		if patch == "" {
			req.Patch = nil
		}
		_, _, err = s.Replay(b.ctx, req)
		require.True(t, apperror.Is(err, apperror.InvalidInput), "%v", err)
		require.ErrorContains(t, err, `"/name": does not meet "pattern"`)
		f, _ := apperror.From(err)
		require.NotContains(t, f.Error()+f.Fields[0].Message, "planted")
	}
	req := request()
	req.Input = json.RawMessage(`{"name":"planted-secret"}`)
	_, _, err = b.Start(b.ctx, req)
	require.ErrorContains(t, err, "planted-secret", "the caller sent this input itself")
}

// requestWithSchema publishes a version of hello whose input has a schema, and returns the request of a run of it.
func (b *bench) requestWithSchema(t *testing.T, schema, input string) start.Request {
	t.Helper()
	_, err := b.workflows.Publish(b.ctx, here, workflow.Submission{Source: "document: {dsl: 1.0.3, namespace: examples, name: hello, version: 2.0.0}\n" +
		"input: {schema: {document: " + schema + "}}\ndo: [{a: {set: {n: 1}}}]\n"}, "ada")
	require.NoError(t, err)
	req := request()
	req.Version, req.Input = "2.0.0", json.RawMessage(input)
	return req
}

func TestRefusedInputNamesMissingProperties(t *testing.T) {
	t.Parallel()
	b, _, first := newRedacted(t)
	req := b.requestWithSchema(t, `{required: [name, a/b, zip], dependentRequired: {name: [title]}}`,
		`{"name":"planted-secret"}`)
	var err error
	for _, hidden := range []bool{false, true} {
		req.InputHidden = hidden
		_, _, err = b.Start(b.ctx, req)
		f, _ := apperror.From(err)
		require.Equal(t, apperror.InvalidInput, f.Reason, "%v", err)
		require.Equal(t, "input/a~1b is required, input/zip is required",
			fmt.Sprintf("%s %s, %s %s", f.Fields[0].Path, f.Fields[0].Message, f.Fields[1].Path, f.Fields[1].Message))
		require.Equal(t, "input", f.Fields[2].Path)
	}
	require.ErrorContains(t, err, `"": does not meet "required": no "a/b", "zip"`)
	originals := sealedStub{first.ID: json.RawMessage(`{"name":"planted-secret"}`)}
	replayed := replay(first.ID)
	replayed.Version = control.Latest
	_, _, err = b.controlled(b.Service, redactedRows{b.store}, originals).Replay(b.ctx, replayed)
	require.ErrorContains(t, err, `"": does not meet "required": no "a/b", "zip"`)
}

// JSON Schema does not require formats: a run is started with a warning that quotes nothing.
func TestInputFormatsAreWarnings(t *testing.T) {
	t.Parallel()
	b, _, _ := newRedacted(t)
	req := b.requestWithSchema(t, `{properties: {mail: {format: email}}}`, `{"mail":"planted"}`)
	req.RequestID = "formats"
	r, created, err := b.Start(b.ctx, req)
	require.NoError(t, err)
	require.True(t, created)
	stored, err := b.store.GetRun(b.ctx, here, r.ID)
	require.NoError(t, err)
	for _, got := range [][]run.Warning{r.Warnings, stored.Warnings} {
		require.Len(t, got, 1)
		require.Equal(t, []string{run.WarningInputFormat, `input/mail is not of the format "email"`},
			[]string{got[0].Code, got[0].Detail})
	}
}

// redactedRows is a store with marks in its rows.
type redactedRows struct{ run.Store }

func (s redactedRows) GetRun(ctx context.Context, project, id string) (run.Run, error) {
	r, err := s.Store.GetRun(ctx, project, id)
	r.Redacted = true
	return r, err
}

func TestReplayRefusesLeaksAndLosses(t *testing.T) { //nolint:tparallel // the cases use one bench in turn
	t.Parallel()
	b, s, first := newRedacted(t)
	b.publish(t, "examples/other", "1.0.0")
	before := len(b.rows(t))
	for name, tt := range map[string]struct {
		change func(*control.ReplayRequest)
		class  apperror.Class
		reason string
	}{
		"no reason": {func(r *control.ReplayRequest) { r.Reason = " " }, apperror.Invalid, apperror.InvalidArgument},
		"a mark left in": {func(r *control.ReplayRequest) {
			r.Input = json.RawMessage(redactedInput)
		}, apperror.Invalid, apperror.InputRedacted},
		"a mark patched in": {func(r *control.ReplayRequest) {
			r.Patch = json.RawMessage(`[{"op":"add","path":"/x","value":"` + redact.Mark + `"}]`)
		}, apperror.Invalid, apperror.InputRedacted},
		"a test of a mark": {func(r *control.ReplayRequest) {
			r.Patch = json.RawMessage(`[{"op":"test","path":"/password","value":"hunter22"}]`)
		}, apperror.Invalid, apperror.InputRedacted},
		"both": {func(r *control.ReplayRequest) { r.Input, r.Patch = json.RawMessage(`{}`), json.RawMessage(`[]`) },
			apperror.Invalid, apperror.InvalidArgument},
		"an empty object is an input": {func(r *control.ReplayRequest) {
			r.Input = json.RawMessage(`{}`)
		}, apperror.Invalid, apperror.InvalidInput},
		"against the schema": {func(r *control.ReplayRequest) {
			r.Patch = json.RawMessage(`[{"op":"replace","path":"/name","value":7}]`)
		}, apperror.Invalid, apperror.InvalidInput},
		"unknown version": {func(r *control.ReplayRequest) {
			r.Version = "9.9.9"
		}, apperror.NotFound, apperror.VersionNotFound},
		"unknown run": {func(r *control.ReplayRequest) { r.RunID = "none" }, apperror.NotFound, apperror.RunNotFound},
		"foreign project": {func(r *control.ReplayRequest) {
			r.Project = "elsewhere"
		}, apperror.NotFound, apperror.ProjectNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			req := replay(first.ID)
			tt.change(&req)
			_, created, err := s.Replay(b.ctx, req)
			require.False(t, created)
			requireError(t, err, tt.class, tt.reason, "")
			require.NotContains(t, err.Error(), "hunter22")
			require.Len(t, b.rows(t), before, "no row was added")
		})
	}
	_, err := b.workflows.SetPaused(b.ctx, here, "hello", true, "bad data")
	require.NoError(t, err)
	_, _, err = s.Replay(b.ctx, replay(first.ID))
	requireError(t, err, apperror.Refused, apperror.WorkflowPaused, "bad data")
	_, err = b.workflows.SetPaused(b.ctx, here, "hello", false, "")
	require.NoError(t, err)
	b.engine.check = func(context.Context) error { return unavailable() }
	_, _, err = s.Replay(b.ctx, replay(first.ID))
	requireError(t, err, apperror.Unavailable, apperror.EngineUnavailable, "")
	require.Len(t, b.rows(t), before)
}

func TestReplayOfAWorkflowThatWasDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.begin(t)
	b.applyState(t, first.ID, 3, run.Completed)
	require.NoError(t, b.workflows.Delete(b.ctx, here, "hello"))
	_, _, err := b.Replay(b.ctx, replay(first.ID))
	requireError(t, err, apperror.NotFound, apperror.WorkflowNotFound, "examples/hello")

	// A version published again with other content is another one.
	_, err = b.workflows.Publish(b.ctx, here, workflow.Submission{Source: "document: {dsl: 1.0.3, namespace: examples, name: hello, version: 1.0.0}\ndo: [{b: {set: {n: 2}}}]"}, "ada")
	require.NoError(t, err)
	_, _, err = b.Replay(b.ctx, replay(first.ID))
	requireError(t, err, apperror.NotFound, apperror.VersionNotFound, "published again")
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

		// The request also succeeds while nothing can be started: the run exists.
		b.engine.check = func(context.Context) error { return unavailable() }
		again, created, err = b.Replay(b.ctx, req)
		require.NoError(t, err)
		require.Equal(t, []any{r.ID, false}, []any{again.ID, created})
		other := req
		other.RunID = second.ID
		_, _, err = b.Replay(b.ctx, other)
		requireError(t, err, apperror.Unavailable, apperror.EngineUnavailable, "")
		b.engine.check = nil

		_, _, err = b.Replay(b.ctx, other)
		requireError(t, err, apperror.Exists, apperror.RequestIDReused, "once")
		start := request()
		start.RequestID = "once"
		_, _, err = b.Start(b.ctx, start)
		requireError(t, err, apperror.Exists, apperror.RequestIDReused, "once")
		start.RequestID = "started"
		_, _, err = b.Start(b.ctx, start)
		require.NoError(t, err)
		req.RequestID = "started"
		_, _, err = b.Replay(b.ctx, req)
		requireError(t, err, apperror.Exists, apperror.RequestIDReused, "started")
		req.RequestID = "child:k"
		_, _, err = b.Replay(b.ctx, req)
		requireError(t, err, apperror.Invalid, apperror.InvalidArgument, `begins with "child:"`)
	})
}

func TestReplayInTheQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.begin(t)
	b.away()
	s := b.controlled(b.queueing(t, b.store), b.store, nil)
	r, created, err := s.Replay(b.ctx, replay(first.ID))
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, []string{run.QueuedEngine, first.ID}, []string{r.QueuedReason, b.row(t, r.ID).ReplayOf})
	require.Contains(t, b.audited(t), "run.replay once more")
}

// imported makes a run that another engine executed, with an input.
func (b *bench) imported(t *testing.T, id, input string) run.Run {
	t.Helper()
	r := run.Run{
		ID: id, Project: here, Workflow: "examples/hello", Version: "7", Status: run.Queued, QueuedReason: run.QueuedWorker,
		StatusAt: b.clock(), CreatedAt: b.clock(), RequestID: id, Trigger: run.TriggerImport, Input: json.RawMessage(input),
	}
	_, made, err := b.store.InsertRun(b.ctx, r, entry(b, id))
	require.NoError(t, err)
	require.True(t, made)
	b.applyState(t, id, 3, run.Canceled)
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
		requireError(t, err, apperror.NotFound, apperror.WorkflowNotFound, "examples/hello")
		b.publish(t, "examples/hello", "1.0.0")
		before := len(b.rows(t))
		_, _, err = b.Replay(b.ctx, replay("old"))
		requireError(t, err, apperror.Refused, apperror.RunImported, "name the version of examples/hello")
		_, _, err = b.Replay(b.ctx, named("old", "7"))
		requireError(t, err, apperror.NotFound, apperror.VersionNotFound, "7")
		require.Len(t, b.rows(t), before)

		r, created, err := b.Replay(b.ctx, named("old", control.Latest))
		require.NoError(t, err)
		require.True(t, created)
		require.Equal(t, []string{"1.0.0", "old", run.TriggerReplay, `{"name":"Ada"}`},
			[]string{r.Version, r.ReplayOf, r.Trigger, string(r.Input)})
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
		requireError(t, err, apperror.Refused, apperror.RunImported, "were not stored")
		req.Patch = json.RawMessage(`[{"op":"replace","path":"/name","value":"Bob"}]`)
		_, _, err = b.Replay(b.ctx, req)
		requireError(t, err, apperror.Refused, apperror.RunImported, "replaces each mark")
		require.Len(t, b.rows(t), before)
		req.Patch = json.RawMessage(`[{"op":"replace","path":"/password","value":"once-more"}]`)
		r, _, err = b.Replay(b.ctx, req)
		require.NoError(t, err)
		require.JSONEq(t, `{"name":"Ada","password":"once-more"}`, string(r.Input))

		b.imported(t, "bare", "")
		req = named("bare", control.Latest)
		_, _, err = b.Replay(b.ctx, req)
		requireError(t, err, apperror.Refused, apperror.RunImported, "its input is not stored")
		req.Input = json.RawMessage(`{"name":"Eve"}`)
		_, _, err = b.Replay(b.ctx, req)
		require.NoError(t, err)
	})
}

func TestListsCanOmitReplayedRuns(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		first, second := b.begin(t), b.begin(t)
		again, _, err := b.Replay(b.ctx, replay(first.ID))
		require.NoError(t, err)
		for _, filter := range []run.Filter{
			{}, {Statuses: []run.Status{run.Queued}}, {Workflow: "examples/hello"}, {Text: "0"}} {
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

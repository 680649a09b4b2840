package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/secret"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

const (
	here  = project.Default
	hello = "examples/hello"
)

// bench is a service over a real store, with a clock that advances a second at each read.
type bench struct {
	*workflow.Service
	store *storetest.Plain
	ctx   context.Context // the test's, with the actor ada

	mu  sync.Mutex
	now time.Time
}

func newBench(t *testing.T) *bench {
	t.Helper()
	kept, err := storetest.Open(t.Context(), t, store.Options{
		Driver: store.SQLite, DSN: storetest.SQLite(t), AutoMigrate: true, CallTimeout: time.Minute,
	})
	require.NoError(t, err)
	ctx := t.Context()
	t.Cleanup(func() { require.NoError(t, kept.Stop(context.WithoutCancel(ctx))) })
	require.NoError(t, kept.Start(ctx))
	b := &bench{
		store: kept, ctx: auth.WithActor(ctx, auth.Actor{Kind: auth.KindLocal, Name: "ada"}),
		now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
	limits := dsl.DefaultLimits()
	limits.MaxBytes = 4 << 10
	b.Service = workflow.NewService(kept, kept, limits, b.tick)
	return b
}

func (b *bench) tick() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(time.Second)
	return b.now
}

func (b *bench) publish(t *testing.T, name, version string) workflow.Published {
	t.Helper()
	p, err := b.Publish(b.ctx, here, workflow.Submission{Source: document(name, version, "1")}, "ada")
	require.NoError(t, err)
	return p
}

func (b *bench) actions(t *testing.T) []string {
	t.Helper()
	list, err := b.store.ListAudit(b.ctx, audit.Filter{Limit: 100, Project: here})
	require.NoError(t, err)
	var actions []string
	for _, e := range list {
		require.Equal(t, "ada", e.Actor.Name)
		actions = append(actions, e.Action+" "+e.Subject)
	}
	return actions
}

// document returns a workflow with a full name that sets n to a value.
func document(name, version, value string) string {
	namespace, short, _ := strings.Cut(name, "/")
	return fmt.Sprintf("document: {dsl: 1.0.3, namespace: %s, name: %s, version: '%s', title: T%s, summary: S%s}\ndo:\n "+
		" - a: {set: {n: %s}}\n",
		namespace, short, version, value, value, value)
}

func requireError(t *testing.T, err error, class apperror.Class, reason, says string) {
	t.Helper()
	f, ok := apperror.From(err)
	require.True(t, ok, "not an apperror.Error: %v", err)
	require.Equal(t, reason, f.Reason)
	require.Equal(t, class, f.Class)
	require.Contains(t, f.Message, says)
}

func TestDrafts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	source := document(hello, "1.0.0", "1")
	w, violations, err := b.SaveDraft(b.ctx, here, workflow.Submission{Source: source})
	require.NoError(t, err)
	require.Empty(t, violations)
	require.Equal(t, []any{hello, workflow.StateDraft, true, "T1", ""},
		[]any{w.Name, w.State, w.HasDraft, w.Title, w.LatestVersion})
	d, err := b.GetDraft(b.ctx, here, "hello")
	require.NoError(t, err)
	require.Equal(t, source, d.Source)

	// A draft may have violations, as long as it names its workflow.
	wrong := strings.Replace(source, "set:", "sett:", 1)
	w, violations, err = b.SaveDraft(b.ctx, here, workflow.Submission{Source: wrong})
	require.NoError(t, err)
	require.Equal(t, hello, w.Name)
	require.NotEmpty(t, violations)
	d, err = b.GetDraft(b.ctx, here, hello)
	require.NoError(t, err)
	require.Equal(t, wrong, d.Source)

	for name, bad := range map[string]string{"nameless": "do: []", "no YAML": "document: [", "empty": ""} {
		_, violations, err = b.SaveDraft(b.ctx, here, workflow.Submission{Source: bad})
		requireError(t, err, apperror.Invalid, apperror.InvalidDocument, "a draft must at least name its workflow")
		require.NotEmpty(t, violations, name)
	}
	_, _, err = b.SaveDraft(b.ctx, "none", workflow.Submission{Source: source})
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, `"none"`)
	_, _, err = b.SaveDraft(b.ctx, here, workflow.Submission{Source: source + strings.Repeat("#", 4<<10)})
	requireError(t, err, apperror.Exhausted, apperror.DefinitionTooLarge, "4096")
	require.Equal(t, []string{"workflow.save_draft " + hello, "workflow.save_draft " + hello}, b.actions(t),
		"refused calls are not audited")
}

func TestPublish(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	source := document(hello, "1.0.0", "1")
	first, err := b.Publish(b.ctx, here, workflow.Submission{Source: source}, "ada")
	require.NoError(t, err)
	require.True(t, first.Created)
	require.Equal(t, []string{"1.0.0", workflow.StatePublished},
		[]string{first.Workflow.LatestVersion, first.Workflow.State})
	doc, _ := dsl.Parse([]byte(source))
	require.Equal(t, doc.Hash(), first.Version.Hash)
	canonical, err := b.store.Document(b.ctx, doc.Hash())
	require.NoError(t, err)
	require.Equal(t, string(doc.Canonical()), string(canonical))

	again, err := b.Publish(b.ctx, here, workflow.Submission{Source: "# only a comment\n" + source}, "grace")
	require.NoError(t, err)
	require.False(t, again.Created, "the same content is the same version")
	require.Equal(t, "ada", again.Version.Publisher)

	_, err = b.Publish(b.ctx, here, workflow.Submission{Source: document(hello, "1.0.0", "2")}, "ada")
	requireError(t, err, apperror.Exists, apperror.VersionTaken, "1.0.0")
	v, err := b.GetVersion(b.ctx, here, hello, "1.0.0")
	require.NoError(t, err)
	require.Equal(t, source, v.Source, "a published version does not change")
	_, err = b.Publish(b.ctx, "none", workflow.Submission{Source: source}, "ada")
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, `"none"`)
	_, err = b.Publish(b.ctx, here, workflow.Submission{Source: source + strings.Repeat("#", 4<<10)}, "ada")
	requireError(t, err, apperror.Exhausted, apperror.DefinitionTooLarge, "workflows.max_definition_bytes")
	require.Equal(t, []string{"workflow.publish " + hello}, b.actions(t))
}

func TestPublishReportsEveryViolation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	source := strings.Replace(document(hello, "one", "1"), "set:", "sett:", 1)
	p, err := b.Publish(b.ctx, here, workflow.Submission{Source: source}, "ada")
	requireError(t, err, apperror.Invalid, apperror.InvalidDocument, "the document cannot be published: ")
	f, _ := apperror.From(err)
	errors := 0
	for _, violation := range p.Violations {
		if violation.Severity == dsl.SeverityError {
			errors++
		}
	}
	require.Greater(t, errors, 1)
	require.Len(t, f.Fields, errors)
	require.Contains(t, f.Message, fmt.Sprintf("(and %d more)", errors-1))
	require.Equal(t, "source", f.Fields[0].Path)
	_, err = b.Get(b.ctx, here, hello)
	requireError(t, err, apperror.NotFound, apperror.WorkflowNotFound, hello)
}

// locker has one secret, does not have a second, and fails for a third.
type locker struct{}

func (locker) Resolve(_ context.Context, project, name string) (secret.Value, error) {
	switch name {
	case "known":
		return secret.Value("planted-" + project), nil
	case "unknown":
		return nil, errors.New("planted: the store is sealed")
	}
	return nil, fmt.Errorf("it: %w", secret.ErrMissing)
}

func TestPublishWarnsOfMissingSecrets(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.SetSecretProvider(locker{})
	source := strings.Replace(document("ns/hello", "1.0.0", "1"), "do:", "use: {secrets: [known, gone, unknown]}\ndo:\n"+
		"  - c: {call: http, with: {method: get, endpoint: http://x, headers: {A: '${ $secrets.known + $secrets.gone + "+
		"$secrets.unknown }'}}}", 1)
	p, err := b.Publish(b.ctx, here, workflow.Submission{Source: source}, "ada")
	require.NoError(t, err)
	require.True(t, p.Created)
	require.Len(t, p.Violations, 2)
	for i, want := range []string{
		`the secret "gone" was not found by the server`, `whether there is a secret "unknown" is not known: its provider failed`} {
		require.Equal(t, dsl.SeverityWarning, p.Violations[i].Severity)
		require.Equal(t, dsl.CodeSecret, p.Violations[i].Code)
		require.Equal(t, want, p.Violations[i].Message)
		require.Equal(t, fmt.Sprintf("/use/secrets/%d", i+1), p.Violations[i].Path)
		require.Positive(t, p.Violations[i].Pos.Line)
	}
}

// Checks warn of programs that no connected runner executes, or without isolation, once for each kind.
func TestChecksWarnOfProgramsWithoutARunner(t *testing.T) {
	t.Parallel()
	runner := func(id, shell string) workflow.Runner {
		r := workflow.Runner{ID: id, Isolations: map[string]string{"js": "webassembly"}}
		if shell != "" {
			r.Isolations["shell"] = shell
		}
		return r
	}
	for name, c := range map[string]struct {
		runners []workflow.Runner
		err     error
		want    string // of the shell command; empty: no warning
		scripts bool   // whether scripts have a warning, too
	}{
		"none connected": {nil, nil, `no runner of the project "default" is connected, which would execute shell commands`, true},
		"one refuses":    {[]workflow.Runner{runner("r1", "")}, nil, `no connected runner of the project "default" executes shell commands: refused by r1`, false},
		"one of two": {[]workflow.Runner{runner("r1", ""), runner("r2", "bubblewrap")}, nil,
			`not every connected runner of the project "default" executes shell commands: refused by r1`, false},
		"not isolated": {[]workflow.Runner{runner("r1", "none")}, nil, "shell commands are executed without isolation by r1", false},
		"isolated":     {[]workflow.Runner{runner("r1", "container")}, nil, "", false},
		"not reported": {[]workflow.Runner{{ID: "r1"}}, nil, "", false},
		"not known":    {nil, errors.New("Temporal is away"), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.SetRunners(func(context.Context, string) ([]workflow.Runner, error) { return c.runners, c.err })
			source := strings.Replace(document("ns/hello", "1.0.0", "1"), "do:", `do:
  - one: {run: {shell: {command: ls}}}
  - two: {run: {shell: {command: ls}}}
  - three: {run: {script: {language: js, code: '1'}}}`, 1)
			checked, err := b.Validate(b.ctx, here, workflow.Submission{Source: source})
			require.NoError(t, err)
			require.NotNil(t, checked.Document)
			var shell, scripts []string
			for _, v := range checked.Violations {
				require.Equal(t, dsl.SeverityWarning, v.Severity)
				require.Equal(t, dsl.CodeRunner, v.Code)
				require.Positive(t, v.Pos.Line)
				if v.Path == "/do/0/one/run/shell" {
					shell = append(shell, v.Message)
				} else {
					scripts = append(scripts, v.Path)
				}
			}
			if c.want == "" {
				require.Empty(t, shell)
			} else {
				require.Equal(t, []string{c.want}, shell)
			}
			require.Equal(t, c.scripts, len(scripts) > 0, scripts)
		})
	}
}

func TestSensitivePathsWithoutValuesAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	source := strings.Replace(document(hello, "1.0.0", "1"), "}\ndo:",
		", metadata: {sensitive: [\n    /input/card,\n    card.cvv]}}\ndo:", 1)
	checked, err := b.Validate(b.ctx, here, workflow.Submission{Source: source})
	require.NoError(t, err)
	require.Nil(t, checked.Document)
	require.Equal(t, hello, checked.Name)
	require.Len(t, checked.Violations, 1)
	p := checked.Violations[0]
	require.Equal(t, "/document/metadata/sensitive/1", p.Path)
	before, _, _ := strings.Cut(source, "card.cvv")
	line := strings.Count(before, "\n") + 1
	require.Equal(t, dsl.Pos{Line: line, Column: 5}, p.Pos)
	_, err = b.Publish(b.ctx, here, workflow.Submission{Source: source}, "ada")
	requireError(t, err, apperror.Invalid, apperror.InvalidDocument, `"card.cvv" does not point into an input or output`)
	_, err = b.Publish(b.ctx, here, workflow.Submission{Source: strings.Replace(source, "card.cvv", "/output/cvv", 1)}, "ada")
	require.NoError(t, err)
}

func TestPublishDraft(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, _, err := b.SaveDraft(b.ctx, here, workflow.Submission{Source: document(hello, "1.0.0", "1")})
	require.NoError(t, err)
	_, err = b.GetVersion(b.ctx, here, hello, "")
	requireError(t, err, apperror.Refused, apperror.WorkflowNotPublished, "signalbox workflow publish")
	_, err = b.SetPaused(b.ctx, here, hello, true, "")
	requireError(t, err, apperror.Refused, apperror.WorkflowNotPublished, hello)

	p, err := b.PublishDraft(b.ctx, here, "hello", "ada")
	require.NoError(t, err)
	require.True(t, p.Created)
	require.False(t, p.Workflow.HasDraft, "publishing removes the draft")
	_, err = b.PublishDraft(b.ctx, here, "hello", "ada")
	requireError(t, err, apperror.NotFound, apperror.DraftNotFound, hello)

	_, _, err = b.SaveDraft(b.ctx, here, workflow.Submission{Source: strings.Replace(document(hello, "1.1.0", "1"), "set:", "sett:", 1)})
	require.NoError(t, err)
	_, err = b.PublishDraft(b.ctx, here, hello, "ada")
	requireError(t, err, apperror.Invalid, apperror.InvalidDocument, "cannot be published")
	_, err = b.GetDraft(b.ctx, here, hello)
	require.NoError(t, err, "a refused draft is kept")
}

func TestGraph(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	labels := func(g workflow.VersionGraph) string {
		var out []string
		for _, n := range g.Graph.Nodes {
			out = append(out, strings.TrimSpace(n.ID+" "+n.Label))
		}
		return g.Workflow + "@" + g.Version + ": " + strings.Join(out, ", ")
	}
	_, _, err := b.SaveDraft(b.ctx, here, workflow.Submission{Source: document(hello, "1.0.0", "1")})
	require.NoError(t, err)
	g, err := b.Graph(b.ctx, here, "hello", "", false)
	require.NoError(t, err)
	require.Equal(t, "examples/hello@: start, /do/0/a n, end", labels(g), "nothing is published")

	b.publish(t, hello, "1.0.0")
	_, err = b.Publish(b.ctx, here, workflow.Submission{
		Source: strings.Replace(document(hello, "1.1.0", "1"), "a: {set: {n: 1}}", "b: {wait: PT1M}", 1),
	}, "ada")
	require.NoError(t, err)
	g, err = b.Graph(b.ctx, here, hello, "", false)
	require.NoError(t, err)
	require.Equal(t, "examples/hello@1.1.0: start, /do/0/b 1m, end", labels(g))
	g, err = b.Graph(b.ctx, here, hello, "1.0.0", false)
	require.NoError(t, err)
	require.Equal(t, "examples/hello@1.0.0: start, /do/0/a n, end", labels(g))

	_, err = b.Graph(b.ctx, here, hello, "9.9.9", false)
	requireError(t, err, apperror.NotFound, apperror.VersionNotFound, "9.9.9")
	_, err = b.Graph(b.ctx, here, hello, "", true)
	requireError(t, err, apperror.NotFound, apperror.DraftNotFound, hello)
	_, err = b.Graph(b.ctx, here, "nope", "", false)
	requireError(t, err, apperror.NotFound, apperror.WorkflowNotFound, "nope")
	_, _, err = b.SaveDraft(b.ctx, here, workflow.Submission{Source: strings.Replace(document(hello, "1.2.0", "1"), "set:", "sett:", 1)})
	require.NoError(t, err)
	_, err = b.Graph(b.ctx, here, hello, "", true)
	requireError(t, err, apperror.Invalid, apperror.InvalidDocument, "has no graph until it is valid")
}

func TestLatestIsByPrecedence(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, step := range []struct{ publish, latest string }{
		{"1.0.0-rc.1", "1.0.0-rc.1"}, {"1.0.0", "1.0.0"}, {"1.0.0-rc.2", "1.0.0"}, {"1.10.0", "1.10.0"}, {"1.9.0", "1.10.0"},
		{"2.0.0-alpha", "2.0.0-alpha"}, {"2.0.0-alpha.1", "2.0.0-alpha.1"},
	} {
		require.Equal(t, step.latest, b.publish(t, hello, step.publish).Workflow.LatestVersion, "after %s", step.publish)
	}
	v, err := b.GetVersion(b.ctx, here, "hello", "")
	require.NoError(t, err)
	require.Equal(t, "2.0.0-alpha.1", v.Version)
	v, err = b.GetVersion(b.ctx, here, "hello", "1.9.0")
	require.NoError(t, err)
	require.Equal(t, "1.9.0", v.Version)
	_, err = b.GetVersion(b.ctx, here, "hello", "3.0.0")
	requireError(t, err, apperror.NotFound, apperror.VersionNotFound, "3.0.0")

	var newest []string
	page, err := b.ListVersions(b.ctx, here, "hello", nil, 4)
	require.NoError(t, err)
	for len(page) > 0 {
		for _, v := range page {
			newest = append(newest, v.Version)
		}
		last := page[len(page)-1]
		page, err = b.ListVersions(b.ctx, here, hello,
			&workflow.VersionCursor{PublishedAt: last.PublishedAt, Version: last.Version}, 4)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"2.0.0-alpha.1", "2.0.0-alpha", "1.9.0", "1.10.0", "1.0.0-rc.2", "1.0.0", "1.0.0-rc.1"},
		newest)
}

func TestNewer(t *testing.T) {
	t.Parallel()
	// semver.org, item 11, from lowest to highest.
	order := []string{
		"0.9.9", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11",
		"1.0.0-rc.1",
		"1.0.0", "1.0.1", "1.2.0", "1.10.0", "2.0.0-0", "2.0.0", "10.0.0",
	}
	for i, a := range order {
		for j, b := range order {
			require.Equal(t, i > j, workflow.Newer(a, b), "%s over %s", a, b)
		}
	}
	require.False(t, workflow.Newer("1.0.0+build.2", "1.0.0+build.1"), "builds have no precedence")
	require.True(t, workflow.Newer("1.0.0", ""), "anything is newer than nothing")
}

func TestShortNames(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := project.NewService(b.store, b.tick).Create(b.ctx, "other", "")
	require.NoError(t, err)
	b.publish(t, hello, "1.0.0")
	full, err := b.Resolve(b.ctx, here, "hello")
	require.NoError(t, err)
	require.Equal(t, hello, full)
	full, err = b.Resolve(b.ctx, here, "no/where")
	require.NoError(t, err)
	require.Equal(t, "no/where", full, "a full name is not checked")

	_, err = b.Resolve(b.ctx, here, "")
	requireError(t, err, apperror.Invalid, apperror.InvalidArgument, "NAMESPACE/NAME")
	_, err = b.Resolve(b.ctx, here, "hell")
	requireError(t, err, apperror.NotFound, apperror.WorkflowNotFound, `"hell"`)
	_, err = b.Resolve(b.ctx, "other", "hello")
	requireError(t, err, apperror.NotFound, apperror.WorkflowNotFound, `"other"`)
	_, err = b.Resolve(b.ctx, "none", "hello")
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, `"none"`)
	_, err = b.Resolve(b.ctx, "none", hello)
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, `"none"`)

	b.publish(t, "billing/hello", "1.0.0")
	_, err = b.Get(b.ctx, here, "hello")
	requireError(t, err, apperror.Invalid, apperror.WorkflowAmbiguous, "billing/hello, examples/hello")
	w, err := b.Get(b.ctx, here, hello)
	require.NoError(t, err)
	require.Equal(t, hello, w.Name)
}

func TestPause(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, hello, "1.0.0")
	for _, step := range []struct {
		paused        bool
		reason, state string
		entries       int
	}{
		{true, "bad data", workflow.StatePaused, 2}, {true, "again", workflow.StatePaused, 2},
		{false, "mended", workflow.StatePublished, 3}, {false, "", workflow.StatePublished, 3},
	} {
		w, err := b.SetPaused(b.ctx, here, "hello", step.paused, step.reason)
		require.NoError(t, err)
		require.Equal(t, step.state, w.State)
		require.Len(t, b.actions(t), step.entries)
	}
	require.Equal(t, []string{"workflow.unpause " + hello, "workflow.pause " + hello, "workflow.publish " + hello},
		b.actions(t))
	_, err := b.SetPaused(b.ctx, here, "none", true, "")
	requireError(t, err, apperror.NotFound, apperror.WorkflowNotFound, `"none"`)
}

func TestDelete(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	hash := b.publish(t, hello, "1.0.0").Version.Hash
	r := run.Run{
		ID: "r1", Project: here, Workflow: hello, Version: "1.0.0", DocumentHash: hash, Status: run.Queued,
		QueuedReason: run.QueuedStarting, StatusAt: b.tick(), CreatedAt: b.tick(), RequestID: "r1",
	}
	_, _, err := b.store.InsertRun(b.ctx, r, audit.NewEntry(b.ctx, b.tick(), audit.RunStart, here, "r1", ""))
	require.NoError(t, err)
	requireError(t, b.Delete(b.ctx, here, "hello"), apperror.Refused, apperror.WorkflowHasOpenRuns, "1")
	_, err = b.store.FinishMissing(b.ctx, "r1", run.Failed, nil, b.tick(),
		audit.NewEntry(b.ctx, b.tick(), audit.RunCancel, here, "r1", ""))
	require.NoError(t, err)

	require.NoError(t, b.Delete(b.ctx, here, "hello"))
	require.Equal(t, "workflow.delete "+hello, b.actions(t)[0])
	_, err = b.Get(b.ctx, here, hello)
	requireError(t, err, apperror.NotFound, apperror.WorkflowNotFound, hello)
	_, err = b.store.Document(b.ctx, hash)
	require.NoError(t, err, "documents of runs remain")
	requireError(t, b.Delete(b.ctx, here, hello), apperror.NotFound, apperror.WorkflowNotFound, hello)
	requireError(t, b.Delete(b.ctx, here, "hello"), apperror.NotFound, apperror.WorkflowNotFound, "hello")
}

func TestList(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "a/one", "1.0.0")
	b.publish(t, "b/two", "1.0.0")
	_, err := b.SetPaused(b.ctx, here, "two", true, "")
	require.NoError(t, err)
	_, _, err = b.SaveDraft(b.ctx, here, workflow.Submission{Source: document("c/three", "1.0.0", "1")})
	require.NoError(t, err)
	for _, tt := range []struct {
		filter workflow.Filter
		want   []string
	}{
		{workflow.Filter{}, []string{"a/one", "b/two", "c/three"}},
		{workflow.Filter{States: []string{workflow.StateDraft, workflow.StatePaused}}, []string{"b/two", "c/three"}},
		{workflow.Filter{Text: "T"}, []string{"b/two", "c/three"}},
		{workflow.Filter{After: &workflow.Cursor{Project: here, Name: "b/two"}}, []string{"c/three"}},
		{workflow.Filter{Limit: 2}, []string{"a/one", "b/two"}},
	} {
		tt.filter.Project = here
		if tt.filter.Limit == 0 {
			tt.filter.Limit = 10
		}
		list, err := b.List(b.ctx, tt.filter)
		require.NoError(t, err)
		var names []string
		for _, w := range list {
			names = append(names, w.Name)
		}
		require.Equal(t, tt.want, names)
	}
	_, err = b.List(b.ctx, workflow.Filter{Project: here, States: []string{"open"}})
	requireError(t, err, apperror.Invalid, apperror.InvalidArgument, `"open"`)
	_, err = b.List(b.ctx, workflow.Filter{Project: "none"})
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, `"none"`)
}

func TestValidateStoresNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c, err := b.Validate(b.ctx, here, workflow.Submission{Source: document(hello, "1.0.0", "1")})
	require.NoError(t, err)
	require.Equal(t, []string{hello, "1.0.0"}, []string{c.Name, c.Version})
	require.NotNil(t, c.Document)
	c, err = b.Validate(b.ctx, here, workflow.Submission{Source: strings.Replace(document(hello, "1.0.0", "1"), "set:", "sett:", 1)})
	require.NoError(t, err)
	require.Equal(t, []string{hello, "1.0.0"}, []string{c.Name, c.Version}, "name and version are reported where readable")
	require.Nil(t, c.Document)
	c, err = b.Validate(b.ctx, here, workflow.Submission{Source: ""})
	require.NoError(t, err)
	require.Empty(t, c.Name)
	require.NotEmpty(t, c.Violations)
	list, err := b.List(b.ctx, workflow.Filter{Project: here, Limit: 10})
	require.NoError(t, err)
	require.Empty(t, list)
}

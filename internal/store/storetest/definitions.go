package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/function"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/sandbox/limit"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// longer is a stub for the order of versions.
func longer(a, b string) bool { return len(a) > len(b) || (len(a) == len(b) && a > b) }

func draft(name, source string, n int) workflow.Draft {
	return workflow.Draft{Project: here, Workflow: name, Title: "title of " + source, Summary: "summary", Source: source,
		SavedAt: at(n)}
}

func version(name, number, hash string, n int) workflow.Version {
	return workflow.Version{
		Project: here, Workflow: name, Version: number, Hash: hash, Title: "title " + number, Summary: "summary " + number,
		Source: "source of " + hash, Canonical: []byte(`{"of":"` + hash + `"}`), Publisher: "ada", PublishedAt: at(n),
	}
}

func publish(t testing.TB, s Store, v workflow.Version) {
	t.Helper()
	stored, made, err := s.Publish(t.Context(), v, longer, entry(audit.WorkflowPublish, v.Project, v.Workflow))
	require.NoError(t, err)
	require.True(t, made)
	require.Equal(t, v, stored)
}

func testProjects(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	list, err := s.ListProjects(ctx, "", 10)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, project.Default, list[0].Name)

	for i, name := range []string{"b", "a", "c"} {
		p := project.Project{Name: name, Description: "it's " + name, CreatedAt: at(i)}
		require.NoError(t, s.CreateProject(ctx, p, entry(audit.ProjectCreate, name, name)))
		got, err := s.GetProject(ctx, name)
		require.NoError(t, err)
		require.Equal(t, p, got)
	}
	err = s.CreateProject(ctx, project.Project{Name: "a", CreatedAt: at(9)}, entry(audit.ProjectCreate, "a", "a"))
	requireError(t, err, apperror.Exists, apperror.ProjectExists, "a")
	require.Len(t, audited(t, s, "a"), 1)
	_, err = s.GetProject(ctx, "none")
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, "none")

	list, err = s.ListProjects(ctx, "a", 2)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, []string{"b", "c"}, []string{list[0].Name, list[1].Name})
}

func testUpdateProject(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	p := project.Project{Name: "shop", Description: "sells", CreatedAt: at(1)}
	require.NoError(t, s.CreateProject(ctx, p, entry(audit.ProjectCreate, "shop", "shop")))
	limits := limit.Limits{Memory: 1 << 26, Processes: 9, Processors: 0.25, Disk: 1, Output: 2, Time: time.Minute,
		Network: limit.Guarded}
	for _, tt := range []struct {
		change project.Change
		want   project.Project
	}{
		{project.Change{MaxSteps: new(int64(50_000))},
			project.Project{Description: "sells", Settings: project.Settings{MaxSteps: 50_000}}},
		{project.Change{EndPoison: new(true)},
			project.Project{Description: "sells", Settings: project.Settings{MaxSteps: 50_000, EndPoison: true}}},
		{project.Change{Description: new("")},
			project.Project{Settings: project.Settings{MaxSteps: 50_000, EndPoison: true}}},
		{project.Change{Runners: &[]string{"script", "shell"}},
			project.Project{Settings: project.Settings{MaxSteps: 50_000, EndPoison: true,
				Runners: []string{"script", "shell"}}}},
		{project.Change{Runners: &[]string{}},
			project.Project{Settings: project.Settings{MaxSteps: 50_000, EndPoison: true, Runners: []string{}}}},
		{project.Change{Images: &[]string{"alpine:*"}},
			project.Project{Settings: project.Settings{MaxSteps: 50_000, EndPoison: true, Runners: []string{},
				Images: []string{"alpine:*"}}}},
		{project.Change{ProgramLimits: &limits},
			project.Project{Settings: project.Settings{MaxSteps: 50_000, EndPoison: true, Runners: []string{},
				Images: []string{"alpine:*"}, ProgramLimits: limits}}},
		{
			project.Change{Description: new("it's back"), MaxSteps: new(int64(0)), EndPoison: new(false), Images: &[]string{},
				ProgramLimits: &limit.Limits{}},
			project.Project{Description: "it's back", Settings: project.Settings{Runners: []string{}, Images: []string{}}},
		},
	} {
		tt.want.Name, tt.want.CreatedAt = "shop", at(1)
		got, err := s.UpdateProject(ctx, "shop", tt.change, entry(audit.ProjectUpdate, "shop", "shop"))
		require.NoError(t, err)
		require.Equal(t, tt.want, got)
		got, err = s.GetProject(ctx, "shop")
		require.NoError(t, err)
		require.Equal(t, tt.want, got)
	}
	require.Len(t, audited(t, s, "shop"), 9)

	_, err := s.UpdateProject(ctx, "none", project.Change{EndPoison: new(true)},
		entry(audit.ProjectUpdate, "none", "none"))
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, "none")
	require.Empty(t, audited(t, s, "none"), "a refused update is not audited")
	_, err = s.UpdateProject(ctx, "shop", project.Change{Description: new("a\x00b")},
		entry(audit.ProjectUpdate, "shop", "shop"))
	require.True(t, apperror.Is(err, apperror.InvalidArgument), "%v", err)
	other, err := s.GetProject(ctx, here)
	require.NoError(t, err)
	require.Zero(t, other.Settings, "the settings of other projects stay")
}

func testDrafts(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	first := draft(hello, "one", 1)
	w, err := s.SaveDraft(ctx, first, entry(audit.WorkflowSaveDraft, here, hello))
	require.NoError(t, err)
	require.Equal(t, workflow.Workflow{
		Project: here, Name: hello, Title: "title of one", Summary: "summary", State: workflow.StateDraft, HasDraft: true,
		CreatedAt: at(1), UpdatedAt: at(1),
	}, w)
	second := draft(hello, "two: ünïcode \"quoted\" 'n' %s $1\r\n", 2)
	w, err = s.SaveDraft(ctx, second, entry(audit.WorkflowSaveDraft, here, hello))
	require.NoError(t, err)
	require.Equal(t, at(1), w.CreatedAt)
	require.Equal(t, at(2), w.UpdatedAt)
	require.Equal(t, second.Title, w.Title)
	got, err := s.GetDraft(ctx, here, hello)
	require.NoError(t, err)
	require.Equal(t, second, got)
	require.Len(t, audited(t, s, hello), 2)

	elsewhere := first
	elsewhere.Project = "none"
	_, err = s.SaveDraft(ctx, elsewhere, entry(audit.WorkflowSaveDraft, "none", hello))
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, "none")
}

func testPublish(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	v1 := version(hello, "1", "sha256:one", 1)
	_, err := s.SaveDraft(ctx, draft(hello, v1.Source, 0), entry(audit.WorkflowSaveDraft, here, hello))
	require.NoError(t, err)
	publish(t, s, v1)
	w, err := s.GetWorkflow(ctx, here, hello)
	require.NoError(t, err)
	require.Equal(t, workflow.Workflow{
		Project: here, Name: hello, Title: "title 1", Summary: "summary 1", State: workflow.StatePublished,
		LatestVersion: "1", LatestHash: "sha256:one",
		CreatedAt: at(0), UpdatedAt: at(1),
	}, w, "the draft was what got published, so it is gone")

	// A draft that differs stays; an older version is published without becoming the latest.
	_, err = s.SaveDraft(ctx, draft(hello, "work in progress", 2), entry(audit.WorkflowSaveDraft, here, hello))
	require.NoError(t, err)
	publish(t, s, version(hello, "333", "sha256:three", 3))
	publish(t, s, version(hello, "22", "sha256:one", 4))
	w, err = s.GetWorkflow(ctx, here, hello)
	require.NoError(t, err)
	require.True(t, w.HasDraft)
	require.Equal(t, "333", w.LatestVersion)
	require.Equal(t, at(4), w.UpdatedAt)

	before := len(audited(t, s, hello))
	again := v1
	again.PublishedAt, again.Publisher, again.Source = at(9), "eve", "other source, same canonical form"
	stored, made, err := s.Publish(ctx, again, longer, entry(audit.WorkflowPublish, here, hello))
	require.NoError(t, err)
	require.False(t, made)
	require.Equal(t, v1, stored)
	other := version(hello, "1", "sha256:other", 9)
	_, made, err = s.Publish(ctx, other, longer, entry(audit.WorkflowPublish, here, hello))
	requireError(t, err, apperror.Exists, apperror.VersionTaken, "1")
	require.False(t, made)
	_, err = s.Document(ctx, other.Hash)
	requireError(t, err, apperror.NotFound, apperror.VersionNotFound, other.Hash)
	after, err := s.GetWorkflow(ctx, here, hello)
	require.NoError(t, err)
	require.Equal(t, w, after)
	require.Len(t, audited(t, s, hello), before)

	got, err := s.GetVersion(ctx, here, hello, "1")
	require.NoError(t, err)
	require.Equal(t, v1, got)
	shared, err := s.GetVersion(ctx, here, hello, "22")
	require.NoError(t, err)
	require.Equal(t, v1.Canonical, shared.Canonical)
}

func testResources(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	resource := func(uri, content string, n int) workflow.Resource {
		return workflow.Resource{URI: uri, Hash: "sha256:of " + content, Size: int64(len(content)), LoadedAt: at(n),
			Content: []byte(content)}
	}
	stored := func(v workflow.Version) workflow.Version {
		v.Resources = slices.Clone(v.Resources)
		for i := range v.Resources {
			v.Resources[i].Content = nil
		}
		return v
	}
	v1, v2 := version(hello, "1", "sha256:one", 1), version(hello, "22", "sha256:two", 2)
	v1.Resources = []workflow.Resource{resource("a.yaml", "ünïcode", 1), resource("https://example.com/b", "b", 1)}
	v2.Resources = []workflow.Resource{resource("https://example.com/b", "b", 2)}
	for _, v := range []workflow.Version{v1, v2} {
		published, made, err := s.Publish(ctx, v, longer, entry(audit.WorkflowPublish, here, hello))
		require.NoError(t, err)
		require.True(t, made)
		require.Equal(t, stored(v), published)
		got, err := s.GetVersion(ctx, here, hello, v.Version)
		require.NoError(t, err)
		require.Equal(t, stored(v), got)
	}
	again, made, err := s.Publish(ctx, v1, longer, entry(audit.WorkflowPublish, here, hello))
	require.NoError(t, err)
	require.False(t, made)
	require.Equal(t, stored(v1), again)
	list, err := s.ListVersions(ctx, here, hello, nil, 10)
	require.NoError(t, err)
	require.Nil(t, list[0].Resources)

	hashes := []string{v1.Resources[0].Hash, v1.Resources[1].Hash}
	contents, err := s.Resources(ctx, hashes)
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{hashes[0]: []byte("ünïcode"), hashes[1]: []byte("b")}, contents)
	_, err = s.Resources(ctx, []string{"sha256:none"})
	requireError(t, err, apperror.NotFound, apperror.VersionNotFound, "sha256:none")

	require.NoError(t, s.DeleteWorkflow(ctx, here, hello, entry(audit.WorkflowDelete, here, hello)))
	contents, err = s.Resources(ctx, hashes)
	require.NoError(t, err)
	require.Len(t, contents, 2, "open runs need them")
}

func testFunctions(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	published := func(name, version, source string, n int) function.Function {
		return function.Function{
			Project: here, Name: name, Version: version, Hash: "sha256:of " + source, Size: int64(len(source)),
			Publisher: "ada", PublishedAt: at(n), Source: source,
		}
	}
	audits := func(f function.Function) audit.Entry { return entry(audit.FunctionPublish, here, f.Name+":"+f.Version) }
	list := []function.Function{
		published("a", "2.0.0", "set: {ü: 2}", 2), published("a", "1.0.0", "one", 1), published("b_1", "1.0.0", "one", 3),
	}
	for _, f := range list {
		stored, made, err := s.PublishFunction(ctx, f, audits(f))
		require.NoError(t, err)
		require.True(t, made)
		require.Equal(t, f, stored)
		got, err := s.GetFunction(ctx, here, f.Name, f.Version)
		require.NoError(t, err)
		require.Equal(t, f, got)
	}
	again := list[0]
	again.Publisher, again.PublishedAt = "eve", at(9)
	stored, made, err := s.PublishFunction(ctx, again, audits(again))
	require.NoError(t, err)
	require.False(t, made)
	require.Equal(t, list[0], stored)
	other := published("a", "2.0.0", "other", 9)
	_, _, err = s.PublishFunction(ctx, other, audits(other))
	requireError(t, err, apperror.Exists, apperror.VersionTaken, "2.0.0")
	require.Len(t, audited(t, s, "a:2.0.0"), 1)
	elsewhere := list[0]
	elsewhere.Project = "none"
	_, _, err = s.PublishFunction(ctx, elsewhere, audits(elsewhere))
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, "none")

	newest, err := s.GetFunction(ctx, here, "a", "")
	require.NoError(t, err)
	require.Equal(t, "2.0.0", newest.Version)
	for i := range list {
		list[i].Source = ""
	}
	for _, tt := range []struct {
		filter function.Filter
		want   []function.Function
	}{
		{function.Filter{Limit: 10}, list},
		{function.Filter{Limit: 1}, list[:1]},
		{function.Filter{Limit: 10, After: new(list[0].Position())}, list[1:]},
		{function.Filter{Limit: 10, After: new(list[1].Position())}, list[2:]},
		{function.Filter{Limit: 10, Text: "_"}, list[2:]},
		{function.Filter{Limit: 10, Name: "a"}, list[:2]},
		{function.Filter{Limit: 10, Latest: true}, []function.Function{list[0], list[2]}},
		{function.Filter{Limit: 10, Latest: true, After: new(list[0].Position())}, list[2:]},
	} {
		tt.filter.Project = here
		got, err := s.ListFunctions(ctx, tt.filter)
		require.NoError(t, err)
		require.Equal(t, tt.want, got)
	}

	v := version(hello, "1", "sha256:one", 1)
	v.Resources = []workflow.Resource{{URI: list[1].Reference(), Hash: list[1].Hash, LoadedAt: at(1), Content: []byte("one")}}
	_, _, err = s.Publish(ctx, v, longer, entry(audit.WorkflowPublish, here, hello))
	require.NoError(t, err)
	users, err := s.FunctionUsers(ctx, list[1], 10)
	require.NoError(t, err)
	require.Equal(t, []function.User{{Workflow: hello, Version: "1", Latest: true}}, users)
	_, _, err = s.Publish(ctx, version(hello, "11", "sha256:two", 2), longer, entry(audit.WorkflowPublish, here, hello))
	require.NoError(t, err)
	users, err = s.FunctionUsers(ctx, list[1], 10)
	require.NoError(t, err)
	require.Equal(t, []function.User{{Workflow: hello, Version: "1"}}, users)

	deleted := entry(audit.FunctionDelete, here, "a")
	require.NoError(t, s.DeleteFunction(ctx, here, "a", "2.0.0", deleted))
	newest, err = s.GetFunction(ctx, here, "a", "")
	require.NoError(t, err)
	require.Equal(t, "1.0.0", newest.Version)
	require.NoError(t, s.DeleteFunction(ctx, here, "a", "", deleted))
	_, err = s.GetFunction(ctx, here, "a", "")
	requireError(t, err, apperror.NotFound, apperror.FunctionNotFound, "a")
	requireError(t, s.DeleteFunction(ctx, here, "a", "", deleted), apperror.NotFound, apperror.FunctionNotFound, "a")
	require.Len(t, audited(t, s, "a"), 2)
	_, err = s.Resources(ctx, []string{list[1].Hash})
	require.NoError(t, err, "published workflows need it")
}

func testPublishAtOnce(t *testing.T, open Opener) {
	stores := []Store{open(t), open(t)}
	ctx := t.Context()
	const rivals = 12
	var wg sync.WaitGroup
	made := make([]bool, rivals)
	errs := make([]error, rivals)
	for i := range rivals {
		wg.Go(func() {
			v := version(hello, fmt.Sprint(i%3), fmt.Sprintf("sha256:%d", i%6), i)
			_, made[i], errs[i] = stores[i%2].Publish(ctx, v, longer, entry(audit.WorkflowPublish, here, hello))
		})
	}
	wg.Wait()
	count, taken := 0, 0
	for i := range rivals {
		if made[i] {
			count++
		}
		if errs[i] != nil {
			require.True(t, apperror.Is(errs[i], apperror.VersionTaken), "%v", errs[i])
			taken++
		}
	}
	require.Equal(t, 3, count, "each version is published by one of them")
	require.Equal(t, 6, taken, "those with the other document receive the error")
	require.Len(t, audited(t, stores[0], hello), 3)
	w, err := stores[0].GetWorkflow(ctx, here, hello)
	require.NoError(t, err)
	require.Equal(t, "2", w.LatestVersion)
}

func testListWorkflows(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	names := []string{"a/hello", "a/hello-100%", "a/hello_world", "b/HELLO", "b/hello", "c/other!"}
	for i, name := range names {
		_, err := s.SaveDraft(ctx, draft(name, "x", i), entry(audit.WorkflowSaveDraft, here, name))
		require.NoError(t, err)
	}
	publish(t, s, version("a/hello", "1", "sha256:a", 1))
	publish(t, s, version("b/hello", "1", "sha256:b", 1))
	_, err := s.SetPaused(ctx, here, "b/hello", true, "broken", entry(audit.WorkflowPause, here, "b/hello"))
	require.NoError(t, err)
	require.NoError(t, s.CreateProject(ctx, project.Project{Name: "empty", CreatedAt: at(0)},
		entry(audit.ProjectCreate, "empty", "empty")))

	for _, tt := range []struct {
		name   string
		filter workflow.Filter
		want   []string
	}{
		{"all", workflow.Filter{}, names},
		{"text in any case", workflow.Filter{Text: "Hello"}, names[:5]},
		{"percent is a percent", workflow.Filter{Text: "0%"}, names[1:2]},
		{"underscore is an underscore", workflow.Filter{Text: "hello_"}, names[2:3]},
		{"escape is itself", workflow.Filter{Text: "r!"}, names[5:]},
		{"backslash is itself", workflow.Filter{Text: `\`}, nil},
		{"one state", workflow.Filter{States: []string{workflow.StatePaused}}, []string{"b/hello"}},
		{"two states", workflow.Filter{States: []string{workflow.StatePublished, workflow.StatePaused}},
			[]string{"a/hello", "b/hello"}},
		{"after", workflow.Filter{After: &workflow.Cursor{Project: here, Name: "a/hello_world"}}, names[3:]},
		{"limit", workflow.Filter{Limit: 2}, names[:2]},
		{"another project", workflow.Filter{Project: "empty"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.filter.Project == "" {
				tt.filter.Project = here
			}
			if tt.filter.Limit == 0 {
				tt.filter.Limit = 100
			}
			list, err := s.ListWorkflows(ctx, tt.filter)
			require.NoError(t, err)
			var got []string
			for _, w := range list {
				got = append(got, w.Name)
			}
			require.Equal(t, tt.want, got)
		})
	}
	other := draft("a/other", "x", 9)
	other.Project = "empty"
	_, err = s.SaveDraft(ctx, other, entry(audit.WorkflowSaveDraft, "empty", "a/other"))
	require.NoError(t, err)
	for _, tt := range []struct {
		name   string
		filter workflow.Filter
		want   []string
	}{
		{"all projects", workflow.Filter{Text: "other"}, []string{here + " c/other!", "empty a/other"}},
		{"some projects", workflow.Filter{Projects: []string{"empty", "none"}}, []string{"empty a/other"}},
		{"after", workflow.Filter{After: &workflow.Cursor{Project: here, Name: "b/hello"}},
			[]string{here + " c/other!", "empty a/other"}},
	} {
		tt.filter.Limit = 100
		list, err := s.ListWorkflows(ctx, tt.filter)
		require.NoError(t, err)
		var got []string
		for _, w := range list {
			got = append(got, w.Project+" "+w.Name)
		}
		require.Equal(t, tt.want, got, tt.name)
	}
	_, err = s.ListWorkflows(ctx, workflow.Filter{Project: "none", Limit: 10})
	requireError(t, err, apperror.NotFound, apperror.ProjectNotFound, "none")

	found, err := s.FindByShortName(ctx, here, "hello", 10)
	require.NoError(t, err)
	require.Equal(t, []string{"a/hello", "b/hello"}, found)
	found, err = s.FindByShortName(ctx, here, "hello", 1)
	require.NoError(t, err)
	require.Equal(t, []string{"a/hello"}, found)
	found, err = s.FindByShortName(ctx, here, "none", 10)
	require.NoError(t, err)
	require.Empty(t, found)
}

func testListVersions(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	// Two with the same time are ordered by version.
	for i, n := range []int{1, 2, 2, 3} {
		publish(t, s, version(hello, fmt.Sprint(i), "sha256:same", n))
	}
	var got []string
	var after *workflow.VersionCursor
	for range 10 {
		page, err := s.ListVersions(ctx, here, hello, after, 1)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		v := page[0]
		got = append(got, v.Version)
		require.Empty(t, v.Source)
		require.Empty(t, v.Canonical)
		require.Equal(t, "title "+v.Version, v.Title)
		after = &workflow.VersionCursor{PublishedAt: v.PublishedAt, Version: v.Version}
	}
	require.Equal(t, []string{"3", "2", "1", "0"}, got)
}

func testPause(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	_, err := s.SaveDraft(ctx, draft(hello, "x", 0), entry(audit.WorkflowSaveDraft, here, hello))
	require.NoError(t, err)
	pause := entry(audit.WorkflowPause, here, hello)
	pause.Time = at(5)
	_, err = s.SetPaused(ctx, here, hello, true, "why", pause)
	requireError(t, err, apperror.Refused, apperror.WorkflowNotPublished, hello)
	publish(t, s, version(hello, "1", "sha256:a", 1))
	before := len(audited(t, s, hello))

	w, err := s.SetPaused(ctx, here, hello, true, "broken", pause)
	require.NoError(t, err)
	require.Equal(t, []string{workflow.StatePaused, "broken"}, []string{w.State, w.PauseReason})
	require.Equal(t, at(5), w.UpdatedAt)
	again, err := s.SetPaused(ctx, here, hello, true, "another reason", pause)
	require.NoError(t, err)
	require.Equal(t, w, again)
	require.Len(t, audited(t, s, hello), before+1)

	publish(t, s, version(hello, "22", "sha256:b", 2))
	w, err = s.GetWorkflow(ctx, here, hello)
	require.NoError(t, err)
	require.Equal(t, workflow.StatePaused, w.State, "publishing does not unpause")

	w, err = s.SetPaused(ctx, here, hello, false, "", entry(audit.WorkflowUnpause, here, hello))
	require.NoError(t, err)
	require.Equal(t, []string{workflow.StatePublished, ""}, []string{w.State, w.PauseReason})
}

func testDeleteWorkflow(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	v := version(hello, "1", "sha256:a", 1)
	publish(t, s, v)
	_, err := s.SaveDraft(ctx, draft(hello, "x", 2), entry(audit.WorkflowSaveDraft, here, hello))
	require.NoError(t, err)
	insert(t, s, newRun("r1", 1))
	insert(t, s, newRun("r2", 2))
	apply(t, s, state("r1", 1, run.Completed))

	remove := entry(audit.WorkflowDelete, here, hello)
	err = s.DeleteWorkflow(ctx, here, hello, remove)
	requireError(t, err, apperror.Refused, apperror.WorkflowHasOpenRuns, hello)
	require.ErrorContains(t, err, "1 open run")
	_, err = s.GetDraft(ctx, here, hello)
	require.NoError(t, err)

	apply(t, s, state("r2", 1, run.Failed))
	require.NoError(t, s.DeleteWorkflow(ctx, here, hello, remove))
	require.Equal(t, audit.WorkflowDelete, audited(t, s, hello)[0].Action)
	for _, missing := range []func() error{
		func() error { _, err := s.GetWorkflow(ctx, here, hello); return err },
		func() error { _, err := s.GetDraft(ctx, here, hello); return err },
		func() error { _, err := s.GetVersion(ctx, here, hello, "1"); return err },
	} {
		requireError(t, missing(), apperror.NotFound, apperror.WorkflowNotFound, hello)
	}
	document, err := s.Document(ctx, v.Hash)
	require.NoError(t, err)
	require.Equal(t, v.Canonical, document)
	require.Equal(t, hello, get(t, s, "r1").Workflow)

	// The name is available again, for another document of the same version, too.
	publish(t, s, version(hello, "1", "sha256:b", 9))
}

func testDefinitionsNotFound(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	publish(t, s, version(hello, "1", "sha256:a", 1))
	e := entry(audit.WorkflowPause, here, hello)
	for _, tt := range []struct {
		name            string
		project         string
		workflow        string
		reason, subject string
	}{
		{"project", "none", hello, apperror.ProjectNotFound, "none"},
		{"workflow", here, "none/none", apperror.WorkflowNotFound, "none/none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, call := range map[string]func() error{
				"workflow": func() error { _, err := s.GetWorkflow(ctx, tt.project, tt.workflow); return err },
				"draft":    func() error { _, err := s.GetDraft(ctx, tt.project, tt.workflow); return err },
				"version":  func() error { _, err := s.GetVersion(ctx, tt.project, tt.workflow, "1"); return err },
				"versions": func() error { _, err := s.ListVersions(ctx, tt.project, tt.workflow, nil, 1); return err },
				"pause":    func() error { _, err := s.SetPaused(ctx, tt.project, tt.workflow, true, "", e); return err },
				"delete":   func() error { return s.DeleteWorkflow(ctx, tt.project, tt.workflow, e) },
			} {
				t.Run(name, func(t *testing.T) {
					requireError(t, call(), apperror.NotFound, tt.reason, tt.subject)
				})
			}
		})
	}
	_, err := s.GetDraft(ctx, here, hello)
	requireError(t, err, apperror.NotFound, apperror.DraftNotFound, hello)
	_, err = s.GetVersion(ctx, here, hello, "9.9.9")
	requireError(t, err, apperror.NotFound, apperror.VersionNotFound, "9.9.9")
	_, err = s.Document(ctx, "sha256:none")
	requireError(t, err, apperror.NotFound, apperror.VersionNotFound, "sha256:none")
}

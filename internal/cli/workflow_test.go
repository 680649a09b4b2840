package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

const brokenSource = helloSource + "dos: []\n"

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestValidateNeedsNoServer(t *testing.T) {
	t.Parallel()
	shell := newShell(t, "127.0.0.1:1")
	good, bad := write(t, "good.yaml", helloSource), write(t, "bad.yaml", brokenSource)

	c := shell.run(t, "workflow", "validate", good)
	require.Zero(t, c.code, c.err.String())
	require.Empty(t, c.out.String())
	require.Equal(t, "1 file, 0 violations\n", c.err.String())

	c = shell.run(t, "workflow", "validate", good, bad)
	require.Equal(t, exit.Failed, c.code)
	require.Regexp(t, `(?m)^`+bad+`:5:1: unknown_key: .*dos.*\(.*do.*\)$`, c.out.String())

	c = shell.run(t, "workflow", "validate", bad, good, "-o", "json")
	require.Equal(t, exit.Failed, c.code)
	var results []struct {
		Workflow   string `json:"workflow"`
		Valid      bool   `json:"valid"`
		Violations []struct {
			Line int `json:"line"`
		} `json:"violations"`
	}
	require.NoError(t, json.Unmarshal([]byte(c.out.String()), &results))
	require.False(t, results[0].Valid)
	require.Equal(t, 5, results[0].Violations[0].Line)
	require.Equal(t, "demo/hello", results[1].Workflow)
	require.NotNil(t, results[1].Violations, "[] rather than null")

	shell.stdin = brokenSource
	require.Contains(t, shell.run(t, "workflow", "validate", "-").out.String(), "standard input:5:1:")
}

func TestStrictFailsOnWarnings(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	doubtful := write(t, "doubtful.yaml", helloSource+"use: {timeouts: {spare: {after: PT1S}}}\n")
	c := shell.run(t, "workflow", "validate", doubtful)
	require.Zero(t, c.code, c.err.String())
	require.Contains(t, c.out.String(), doubtful+":5:25: warning: unused: ")
	require.Equal(t, exit.Failed, shell.run(t, "workflow", "validate", "--strict", doubtful).code)

	require.Zero(t, shell.run(t, "workflow", "publish", doubtful).code)
	requireRefusal(t, shell.run(t, "workflow", "publish", "--strict", doubtful), exit.Failed,
		"doubtful.yaml:5:25: warning: unused: ")
	require.Zero(t, shell.run(t, "workflow", "publish", "--strict", write(t, "good.yaml", helloSource)).code)
	requireRefusal(t, shell.run(t, "workflow", "publish", "--strict", "--draft", "nope"), exit.NotFound,
		"WORKFLOW_NOT_FOUND")
	published := len(a.requests)
	requireRefusal(t, shell.run(t, "workflow", "publish", "--strict", "--draft", "demo/hello"), exit.Failed,
		"the draft of demo/hello:1:1: ")
	require.Len(t, a.requests, published)
}

func TestValidateWalksFolders(t *testing.T) {
	t.Parallel()
	shell := newShell(t, "")
	folder := t.TempDir()
	for _, name := range []string{"a.yaml", "sub/b.yml", "sub/c.json", "sub/readme.md", "functions/f/1.0.0/function.yaml",
		"openapi.yaml", "swagger.json", "shop.openapi.yml", ".hidden/d.yaml", ".e.yaml"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(helloSource), 0o600))
	}
	require.Contains(t, shell.run(t, "workflow", "validate", folder).err.String(), "3 files")
	requireRefusal(t, shell.run(t, "workflow", "validate", filepath.Join(folder, "nope.yaml")), exit.Failed,
		"nope.yaml: no such file")
	require.NoError(t, os.Mkdir(filepath.Join(folder, "empty"), 0o700))
	requireRefusal(t, shell.run(t, "workflow", "validate", filepath.Join(folder, "empty")), exit.Failed,
		"holds no workflow file")
}

func TestPublish(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	good := write(t, "good.yaml", helloSource)
	c := shell.run(t, "workflow", "publish", good, "-o", "json")
	require.Zero(t, c.code, c.err.String())
	require.Contains(t, c.out.String(), `"hash": "sha256:abc"`)
	require.Equal(t, helloSource, last[*signalboxv1.PublishWorkflowRequest](t, a).GetSource(), "byte for byte")

	c = shell.run(t, "workflow", "publish", "--draft", "demo/hello")
	require.Zero(t, c.code)
	require.Contains(t, c.err.String(), "nothing changed")
	require.Regexp(t, `(?m)^version +1.0.0$`, c.out.String())
	requireRefusal(t, shell.run(t, "workflow", "publish", "--draft", "nope"), exit.NotFound, "WORKFLOW_NOT_FOUND")

	requireRefusal(t, shell.run(t, "workflow", "publish"), exit.Usage, "--draft")
	requireRefusal(t, shell.run(t, "workflow", "publish", good, "--draft", "x"), exit.Usage, "--draft")
	requireRefusal(t, shell.run(t, "workflow", "publish", write(t, "empty.yaml", "")), exit.Failed, "empty.yaml:1:1:")
	requireRefusal(t, shell.run(t, "workflow", "publish", write(t, "bad.yaml", brokenSource)), exit.Failed,
		"bad.yaml:5:1:", "unknown_key")
	c = shell.run(t, "workflow", "publish", write(t, "worse.yaml", brokenSource+"doos: []\n"))
	require.Equal(t, exit.Failed, c.code)
	require.Contains(t, c.err.String(), "2 violations\n")
	require.Contains(t, c.err.String(), "worse.yaml:6:")
}

func TestWorkflowGraph(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	c := shell.run(t, "workflow", "graph", "hello", "--version", "1.0.0", "-o", "wide")
	require.Zero(t, c.code, c.err.String())
	require.Equal(t, "1.0.0", last[*signalboxv1.GetVersionGraphRequest](t, a).GetVersion())
	require.Equal(t, ""+
		"NODE        KIND    LABEL     NEXT               LINE\n"+
		"start       start   every 5m  /do/0/pick\n"+
		"/do/0/pick  switch  1 case    case end (.x > 1)  3:5\n"+
		"                              end (otherwise)\n"+
		"end         end\n", c.out.String())

	c = shell.run(t, "workflow", "graph", "hello", "--draft", "-o", "json")
	require.True(t, last[*signalboxv1.GetVersionGraphRequest](t, a).GetDraft())
	require.Contains(t, c.out.String(), `"kind": "case"`)
	requireRefusal(t, shell.run(t, "workflow", "graph", "hello", "--draft", "--version", "1.0.0"), exit.Usage,
		"exclude each other")
	requireRefusal(t, shell.run(t, "workflow", "graph", "nope"), exit.NotFound, "WORKFLOW_NOT_FOUND")
	requireRefusal(t, shell.run(t, "workflow", "graph"), exit.Usage, "NAME")
	requireRefusal(t, shell.run(t, "workflow", "graph", "hello", "--as", "png"), exit.Usage, "text, mermaid, dot")
	requireRefusal(t, shell.run(t, "workflow", "graph", "hello", "--as", "dot", "-o", "json"), exit.Usage,
		"exclude each other")
	c = shell.run(t, "workflow", "graph", "hello", "--as", "text")
	require.Contains(t, c.out.String(), "→ end")

	calls := len(a.requests)
	file := write(t, "hello.yaml", helloSource)
	c = shell.run(t, "workflow", "graph", file, "--as", "svg")
	require.Zero(t, c.code, c.err.String())
	require.Contains(t, c.out.String(), "</svg>")
	c = shell.run(t, "workflow", "graph", file, "--as", "dot")
	require.Zero(t, c.code, c.err.String())
	require.Contains(t, c.out.String(), "digraph workflow {")
	shell.stdin = helloSource
	c = shell.run(t, "workflow", "graph", "-", "-o", "json")
	require.Contains(t, c.out.String(), `"workflow": "demo/hello"`)
	requireRefusal(t, shell.run(t, "workflow", "graph", file, "--draft"), exit.Usage, "not the file")
	requireRefusal(t, shell.run(t, "workflow", "graph", write(t, "bad.yaml", brokenSource)), exit.Failed, "bad.yaml:5:1:")
	require.Len(t, a.requests, calls, "no server is needed for a file")
}

func TestSaveAcceptsInvalidDrafts(t *testing.T) {
	t.Parallel()
	shell, _ := sh(t)
	shell.stdin = brokenSource
	c := shell.run(t, "workflow", "save", "-")
	require.Zero(t, c.code)
	require.Contains(t, c.err.String(), "standard input:5:1:")
	require.Contains(t, c.out.String(), "demo/hello")
	c = shell.run(t, "workflow", "save", "-", "-o", "json")
	require.Contains(t, c.out.String(), `"code": "unknown_key"`)
}

func TestWorkflowStatistics(t *testing.T) {
	t.Parallel()
	shell, _ := sh(t)
	wide := shell.run(t, "workflow", "list", "-o", "wide").out.String()
	require.Regexp(t, `(?m)^demo/hello .* 3 running, 10000\+ completed +98.2% +1.2s +41s +3 +1$`, wide)
	require.Regexp(t, `(?m)^demo/idle .* none +no run has ended +0 +0$`, wide, "what is not known is no number")
	require.NotContains(t, shell.run(t, "workflow", "list", "-o", "json").out.String(), "stats")
	require.Contains(t, shell.run(t, "workflow", "list", "--stats", "-o", "json").out.String(), `"successRate": 0.982`)
	card := shell.run(t, "workflow", "show", "hello", "--window", "7d").out.String()
	require.Regexp(t, `(?m)^runs +3 running, 10000\+ completed \(in the last 7d\)$`, card)
	require.Regexp(t, `(?m)^success rate +98.2% of the newest 1000 ended runs$`, card)
	require.Regexp(t, `(?m)^duration +p50 1.2s, p95 41s$`, card)
	require.Regexp(t, `(?m)^last runs +running completed$`, card)
	requireRefusal(t, shell.run(t, "workflow", "list", "--window", "1h"), exit.Usage, "only with -o wide or --stats")
	requireRefusal(t, shell.run(t, "workflow", "show", "hello", "--window", "soon"), exit.Usage,
		`"soon" is no length of time`)
}

func TestWorkflowGrid(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	c := shell.run(t, "workflow", "grid", "hello", "--runs", "2", "--version", "1.0.0")
	require.Zero(t, c.code, c.err.String())
	require.Equal(t, "TASK  1    2\nread  C60  w\nship  F    -\n", c.out.String())
	require.Regexp(t, `(?m)^1 r2 1.0.0 failed 3s$`, c.err.String())
	require.Regexp(t, `(?m)^2 r1 1.0.0 running \(only the first and the last 1000 steps\)$`, c.err.String())
	require.Equal(t, int32(2), last[*signalboxv1.GetWorkflowGridRequest](t, a).GetRuns())
	require.Contains(t, shell.run(t, "workflow", "grid", "hello", "-o", "json").out.String(), `"attempts": 5`)
	requireRefusal(t, shell.run(t, "workflow", "grid", "nope"), exit.NotFound, "WORKFLOW_NOT_FOUND")
	requireRefusal(t, shell.run(t, "workflow", "grid", "hello", "--runs", "51"), exit.Usage, "--runs")
}

func TestWorkflowListShowDiff(t *testing.T) {
	t.Parallel()
	shell, _ := sh(t)
	require.Regexp(t, `(?m)^demo/hello +published +1.0.0 +Says hello +\d+[dh]$`,
		shell.run(t, "workflow", "list").out.String())
	require.Equal(t, "[]\n", shell.run(t, "workflow", "list", "--text", "zzz", "-o", "json").out.String())
	require.Regexp(t, `(?m)^default +demo/hello .*\nshop +demo/hello +published`,
		shell.run(t, "workflow", "list", "--all-projects").out.String())
	require.Contains(t, shell.run(t, "workflow", "list", "--all-projects", "--text", "zzz").err.String(),
		"in which you have a role")
	requireRefusal(t, shell.run(t, "workflow", "list", "--all-projects", "--stats"), exit.Usage, "excludes")
	require.Equal(t, helloSource, shell.run(t, "workflow", "show", "hello", "--source").out.String())
	require.Equal(t, "draft\n", shell.run(t, "workflow", "show", "hello", "--source", "--draft").out.String())
	require.Contains(t, shell.run(t, "workflow", "show", "hello").out.String(), "  do:\n    - greet:")
	require.Contains(t, shell.run(t, "workflow", "show", "hello", "-o", "yaml").out.String(), "name: demo/hello\n")
	requireRefusal(t, shell.run(t, "workflow", "show", "hello", "--draft", "--version", "1.0.0"), exit.Usage,
		"exclude each other")
	require.Regexp(t, `(?m)^1.0.0 +local$`, shell.run(t, "workflow", "versions", "hello").out.String())

	require.Contains(t, shell.run(t, "workflow", "diff", "hello", "1.0.0", "1.1.0").out.String(), "\n-old\n+new\n")
	same := shell.run(t, "workflow", "diff", "hello", "1.0.0", "1.0.0")
	require.Zero(t, same.code)
	require.Equal(t, "the sources are equal\n", same.err.String())

	paused := shell.run(t, "workflow", "pause", "hello", "--reason", "supplier is down")
	require.Regexp(t, `(?m)^reason +supplier is down$`, paused.out.String())
	require.Regexp(t, `(?m)^state +published$`, shell.run(t, "workflow", "unpause", "hello").out.String())
	requireRefusal(t, shell.run(t, "workflow", "delete", "hello"), exit.Refused, "2 open runs", "WORKFLOW_HAS_OPEN_RUNS")
	for _, verb := range []string{"show", "versions", "pause", "delete"} {
		requireRefusal(t, shell.run(t, "workflow", verb, "nope"), exit.NotFound, `"nope"`, "WORKFLOW_NOT_FOUND")
	}
}

func TestWorkflowStop(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	c := shell.run(t, "workflow", "stop", "hello", "--dry-run")
	require.Zero(t, c.code, c.err.String())
	require.Contains(t, c.err.String(), "dry run: would pause the workflow and cancel 1 run of 3 open")
	require.Contains(t, c.err.String(), "1 run would not change")
	for _, line := range []string{
		`state +published`, `open +1 queued, 2 running`, `starts +every 5m`, `next +2026-`, `RUN_IMPORTED +1 +run-3`} {
		require.Regexp(t, `(?m)^`+line, c.out.String())
	}
	require.True(t, last[*signalboxv1.StopWorkflowRequest](t, a).GetDryRun())
	require.Contains(t, shell.run(t, "workflow", "stop", "hello", "--dry-run", "-o", "json").out.String(),
		`"startedBy": "every 5m"`)

	c = shell.run(t, "workflow", "stop", "hello", "--reason", "wrong prices", "--expect", "3", "--request-id", "q")
	require.Zero(t, c.code, c.err.String())
	sent := last[*signalboxv1.StopWorkflowRequest](t, a)
	require.Equal(t, []string{"default", "hello", "wrong prices", "q"},
		[]string{sent.GetProject(), sent.GetWorkflow(), sent.GetReason(), sent.GetRequestId()})
	require.EqualValues(t, 3, sent.GetExpectedOpen())
	for _, line := range []string{`state +paused`, `reason +wrong prices`, `batch +batch-1`} {
		require.Regexp(t, `(?m)^`+line, c.out.String())
	}
	require.Contains(t, c.err.String(), "signalbox batch show batch-1")
	require.Contains(t, shell.run(t, "workflow", "stop", "hello", "--reason", "x", "--request-id", "again").err.String(),
		"stopped before with the request ID again")

	requireRefusal(t, shell.run(t, "workflow", "stop", "hello"), exit.Usage, "--reason is missing")
	requireRefusal(t, shell.run(t, "workflow", "stop", "hello", "--dry-run", "--expect", "3"), exit.Usage,
		"leave out --expect")
	requireRefusal(t, shell.run(t, "workflow", "stop", "hello", "--reason", "x", "--expect", "2"), exit.Refused,
		"3 open runs now")
	requireRefusal(t, shell.run(t, "workflow", "stop", "none", "--reason", "x"), exit.NotFound, "no workflow")
}

func TestProjectAnnotations(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	c := shell.run(t, "project", "annotations", "--since", "2026-01-31", "--until", "2026-02-01T00:00:00Z", "--kind",
		"outage,publish")
	require.Zero(t, c.code, c.err.String())
	sent := last[*signalboxv1.ListAnnotationsRequest](t, a)
	require.Equal(t, []string{"default", "outage", "publish"}, append([]string{sent.GetProject()}, sent.GetKinds()...))
	require.Equal(t, 24*time.Hour, sent.GetTo().AsTime().Sub(sent.GetFrom().AsTime()))
	require.Regexp(t, `(?m)^outage +2026-01-31\S+ +not yet +Temporal is unavailable +unreachable, seen by 1 server$`,
		c.out.String())
	require.Contains(t, c.err.String(), "there are more of kind publish")
	require.Contains(t, shell.run(t, "project", "annotations", "-o", "json").out.String(), `"kind": "outage"`)
	requireRefusal(t, shell.run(t, "project", "annotations", "--kind", "start"), exit.Usage, `"start" is not one of`)
}

func TestWorkflowInit(t *testing.T) {
	t.Parallel()
	shell := newShell(t, "")
	file := filepath.Join(t.TempDir(), "order.yaml")
	c := shell.run(t, "workflow", "init", "--namespace", "shop", file)
	require.Zero(t, c.code, c.err.String())
	require.Contains(t, shell.run(t, "workflow", "validate", file, "-o", "json").out.String(), `"workflow": "shop/order"`)
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	requireRefusal(t, shell.run(t, "workflow", "init", file), exit.Conflict, file, "exists")
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
	requireRefusal(t, shell.run(t, "workflow", "init", filepath.Join(t.TempDir(), "not a name.yaml")), exit.Failed,
		`"not a name"`)
	requireRefusal(t, shell.run(t, "workflow", "init", filepath.Join(t.TempDir(), "none", "x.yaml")), exit.Failed, "init")
}

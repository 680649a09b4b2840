package cli_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

// tests writes helloSource with a file of tests beside it, and returns the path of the workflow.
func tests(t *testing.T, content string) string {
	t.Helper()
	path := write(t, "hello.yaml", helloSource)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "hello.test.yaml"), []byte(content), 0o600))
	return path
}

const oneBad = `
cases:
  - {name: good, expect: {status: completed}}
  - {name: bad, expect: {output: {other: 1}}}
`

func TestTestsNeedNoServer(t *testing.T) {
	t.Parallel()
	shell := newShell(t, "127.0.0.1:1")
	path := tests(t, oneBad)
	c := shell.run(t, "workflow", "test", path)
	require.Equal(t, exit.Failed, c.code)
	require.Contains(t, c.out.String(), "ok      ")
	require.Contains(t, c.out.String(), "hello.test.yaml:4  bad")
	require.Contains(t, c.out.String(), "output: the output differs")
	require.Equal(t, "1 file, 2 cases, 1 failed\n", c.err.String())

	c = shell.run(t, "workflow", "test", filepath.Dir(path), "--run", "^good$")
	require.Zero(t, c.code, c.err.String())
	require.Equal(t, "1 file, 1 case, 0 failed\n", c.err.String())
	requireRefusal(t, shell.run(t, "workflow", "test", path, "--run", "other"), exit.Failed, `no case matches --run "other"`)
	requireRefusal(t, shell.run(t, "workflow", "test", path, "--run", "("), exit.Usage, "--run")
	requireRefusal(t, shell.run(t, "workflow", "test", path, "--min-coverage", "101"), exit.Usage, "between 0 and 100")
	requireRefusal(t, shell.run(t, "workflow", "test", path, "--tap", "-o", "json"), exit.Usage, "exclude each other")
	requireRefusal(t, shell.run(t, "workflow", "test", t.TempDir()), exit.Failed, "holds no test file")
	requireRefusal(t, shell.run(t, "workflow", "test", write(t, "alone.yaml", helloSource)), exit.Failed,
		"there is no alone.test.yaml beside it")
	requireRefusal(t, shell.run(t, "workflow", "test", write(t, "alone.test.yaml", oneBad)), exit.Failed,
		"there is no alone.yaml beside it")
}

func TestTestsNameTheirWorkflow(t *testing.T) {
	t.Parallel()
	path := write(t, "hello.yaml", helloSource)
	other := filepath.Join(filepath.Dir(path), "other.test.yaml")
	require.NoError(t, os.WriteFile(other, []byte("workflow: hello.yaml\ncases: [{name: a, expect: {status: completed}}]"),
		0o600))
	c := newShell(t, "").run(t, "workflow", "test", other)
	require.Zero(t, c.code, c.out.String()+c.err.String())
}

const describedService = `
openapi: 3.1.0
servers: [{url: 'https://shop.example/v1'}]
paths:
  /orders/{id}:
    get: {operationId: getOrder, parameters: [{name: id, in: path, required: true, schema: {type: integer}}]}
`

// Tests read files beside the workflow, and copies of what is at an address.
func TestTestsReadWhatWorkflowsReferTo(t *testing.T) {
	t.Parallel()
	calling := func(document string) string {
		return callingSource + "do: [{get: {call: openapi, with: {document: {endpoint: '" + document +
			"'}, operationId: getOrder, parameters: {id: 7}}}}]\n"
	}
	const address = "https://shop.example/openapi.yaml"
	const cases = `
cases:
  - name: one
    mocks: [{when: '.url == "https://shop.example/v1/orders/7"', respond: {body: {id: 7}}}]
    expect: {output: {id: 7}}
`
	root := folder(t, map[string]string{
		"local.yaml": calling("shop.openapi.yaml"), "local.test.yaml": cases, "shop.openapi.yaml": describedService,
		"remote.yaml": calling(address), "remote.test.yaml": "resources: {'" + address + "': shop.openapi.yaml}" + cases,
		"alone/alone.yaml": calling(address), "alone/alone.test.yaml": cases,
		"gone/gone.yaml": calling(address), "gone/gone.test.yaml": "resources: {'" + address + "': none.yaml}" + cases,
		"up/up.yaml": calling(address), "up/up.test.yaml": "resources: {'" + address + "': ../shop.openapi.yaml}" + cases,
	})
	shell := newShell(t, "127.0.0.1:1")
	for _, name := range []string{"local", "remote"} {
		c := shell.run(t, "workflow", "test", filepath.Join(root, name+".yaml"))
		require.Zero(t, c.code, c.out.String()+c.err.String())
	}
	for name, want := range map[string]string{
		"gone": "read the copy of " + address, "up": "read the copy of " + address,
	} {
		requireRefusal(t, shell.run(t, "workflow", "test", filepath.Join(root, name)), exit.Failed, want)
	}
	c := shell.run(t, "workflow", "test", filepath.Join(root, "alone"))
	require.Equal(t, exit.Failed, c.code)
	require.Equal(t, 1, strings.Count(c.out.String(), "resources: {'"+address+"': FILE}"), c.out.String())
	c = shell.run(t, "workflow", "graph", filepath.Join(root, "remote.yaml"))
	require.Zero(t, c.code, c.err.String())
	require.Contains(t, c.out.String(), "getOrder")
}

func TestResultsOfTestsAsData(t *testing.T) {
	t.Parallel()
	shell, path := newShell(t, ""), tests(t, oneBad)
	report := filepath.Join(t.TempDir(), "report.xml")
	c := shell.run(t, "workflow", "test", path, "-o", "json", "--junit", report)
	require.Equal(t, exit.Failed, c.code)
	var results []struct {
		Passed bool `json:"passed"`
		Cases  []struct {
			Name       string `json:"name"`
			Passed     bool   `json:"passed"`
			Line       int    `json:"line"`
			Mismatches []struct {
				What string `json:"what"`
				Diff string `json:"diff"`
			} `json:"mismatches"`
			Steps []struct {
				Task string `json:"task"`
			} `json:"steps"`
		} `json:"cases"`
		Coverage struct {
			Percent int `json:"percent"`
		} `json:"coverage"`
	}
	require.NoError(t, json.Unmarshal([]byte(c.out.String()), &results))
	require.False(t, results[0].Passed)
	require.True(t, results[0].Cases[0].Passed)
	require.Equal(t, "output", results[0].Cases[1].Mismatches[0].What)
	require.Contains(t, results[0].Cases[1].Mismatches[0].Diff, `-  "other": 1`)
	require.NotEmpty(t, results[0].Cases[1].Steps)
	require.Equal(t, 100, results[0].Coverage.Percent)

	text, err := os.ReadFile(report)
	require.NoError(t, err)
	var suites struct {
		Suites []struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
		} `xml:"testsuite"`
	}
	require.NoError(t, xml.Unmarshal(text, &suites))
	require.Equal(t, 2, suites.Suites[0].Tests)
	require.Equal(t, 1, suites.Suites[0].Failures)
}

func TestTheFirstWorkflowHasTestsThatPass(t *testing.T) {
	t.Parallel()
	shell := newShell(t, "127.0.0.1:1")
	path := filepath.Join(t.TempDir(), "order.yaml")
	require.Zero(t, shell.run(t, "workflow", "init", path).code)
	c := shell.run(t, "workflow", "test", path, "--min-coverage", "100")
	require.Zero(t, c.code, c.out.String()+c.err.String())
	require.NoError(t, os.Remove(path))
	requireRefusal(t, shell.run(t, "workflow", "init", path), exit.Conflict, "order.test.yaml exists")
}

func TestTestsRunAgainWhenAFileChanges(t *testing.T) {
	t.Parallel()
	path := tests(t, oneBad)
	ctx, cancel := context.WithCancel(t.Context())
	c := newShell(t, "").start(ctx, "workflow", "test", path, "--watch")
	require.Eventually(t, func() bool { return strings.Contains(c.err.String(), "1 failed\nwaiting for changes") },
		10*time.Second, 10*time.Millisecond)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "hello.test.yaml"),
		[]byte("cases: [{name: good, expect: {status: completed}}]"), 0o600))
	require.Eventually(t, func() bool { return strings.Contains(c.err.String(), "1 case, 0 failed\n") },
		10*time.Second, 10*time.Millisecond)
	cancel()
	<-c.done
	require.Equal(t, exit.Interrupted, c.code)
}

func TestSchemasArePrinted(t *testing.T) {
	t.Parallel()
	for title, args := range map[string][]string{"Workflow": nil, "Tests of a Signalbox workflow": {"--tests"}} {
		c := newShell(t, "").run(t, append([]string{"workflow", "schema"}, args...)...)
		require.Zero(t, c.code)
		var schema struct{ Title string }
		require.NoError(t, json.Unmarshal([]byte(c.out.String()), &schema))
		require.Equal(t, title, schema.Title)
	}
}

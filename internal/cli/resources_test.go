package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

// folder writes files into a new folder and returns its path.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(content), 0o600))
	}
	return root
}

const callingSource = "document: {dsl: '1.0.3', namespace: demo, name: hello, version: '1.0.0'}\n"

// The files beside a document are sent with it, those that other files refer to included.
func TestFilesBesideADocumentAreSent(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	root := folder(t, map[string]string{
		"hello.yaml": callingSource + "do: [{a: {call: lib/f.yaml}}, {b: {call: 'https://example.com/g.yaml'}}]\n",
		"lib/f.yaml": "call: ./g.yaml\n", "lib/g.yaml": "set: {x: 1}\n", "other.yaml": "secret: 1\n",
	})
	want := map[string]string{"lib/f.yaml": "call: ./g.yaml\n", "lib/g.yaml": "set: {x: 1}\n"}
	file := filepath.Join(root, "hello.yaml")

	c := shell.run(t, "workflow", "validate", file, "-o", "json")
	require.Zero(t, c.code, c.err.String())
	require.NotContains(t, c.out.String(), `"hash"`, "it depends on what is not read")
	require.Contains(t, shell.run(t, "workflow", "validate", file).out.String(),
		`2:42: warning: resource: the resource "https://example.com/g.yaml" is read when the workflow is published`)

	_ = shell.run(t, "workflow", "publish", file) // the fake server has no resources
	require.Equal(t, want, last[*signalboxv1.PublishWorkflowRequest](t, a).GetFiles())
}

// A document cannot make the command line read files outside its folder.
func TestFilesOutsideTheFolderAreNotRead(t *testing.T) {
	t.Parallel()
	shell := newShell(t, "")
	root := folder(t, map[string]string{
		"in/up.yaml":   callingSource + "do: [{a: {call: ../f.yaml}}]\n",
		"in/link.yaml": callingSource + "do: [{a: {call: out.yaml}}]\n",
		"in/none.yaml": callingSource + "do: [{a: {call: none/f.yaml}}]\n",
		"f.yaml":       "set: {x: 1}\n",
	})
	require.NoError(t, os.Symlink(filepath.Join(root, "f.yaml"), filepath.Join(root, "in", "out.yaml")))
	for name, want := range map[string]string{
		"up.yaml":   `2:17: resource: the file "../f.yaml" is outside the folder of the document`,
		"link.yaml": `the resource "out.yaml" cannot be read: openat out.yaml: path escapes from parent`,
		"none.yaml": `the resource "none/f.yaml" cannot be read: openat none/f.yaml: no such file or directory`,
	} {
		c := shell.run(t, "workflow", "validate", filepath.Join(root, "in", name))
		require.Equal(t, exit.Failed, c.code)
		require.Contains(t, c.out.String(), want)
	}
	shell.stdin = callingSource + "do: [{a: {call: f.yaml}}]\n"
	require.Contains(t, shell.run(t, "workflow", "validate", "-").out.String(), "has no folder: give its file instead")
}

// Tests, graphs and differences see the files beside a document, too.
func TestFilesBesideADocumentServeItsTestsGraphAndDifferences(t *testing.T) {
	t.Parallel()
	shell, _ := sh(t)
	root := folder(t, map[string]string{
		"hello.yaml":      callingSource + "do: [{a: {call: lib/f.yaml}}]\n",
		"hello.test.yaml": "cases: [{name: one, expect: {output: {x: 1}}}]\n",
		"lib/f.yaml":      "set: {x: 1}\n",
		"far.yaml":        callingSource + "do: [{b: {call: 'https://example.com/g.yaml'}}]\n",
		"far.test.yaml":   "cases: [{name: one, expect: {output: {x: 1}}}]\n",
	})
	file := filepath.Join(root, "hello.yaml")

	c := shell.run(t, "workflow", "test", file)
	require.Zero(t, c.code, c.out.String()+c.err.String())
	require.Contains(t, c.out.String(), "ok ")
	c = shell.run(t, "workflow", "test", filepath.Join(root, "far.yaml"))
	require.Equal(t, exit.Failed, c.code)
	require.Contains(t, c.out.String(),
		`far.yaml:2:17: resource: the tests cannot run without "https://example.com/g.yaml"`)

	c = shell.run(t, "workflow", "graph", file, "--as", "text")
	require.Zero(t, c.code, c.err.String())
	require.Contains(t, c.out.String(), "call")

	c = shell.run(t, "workflow", "diff", file)
	require.Zero(t, c.code, c.err.String())
	require.Regexp(t, `(?m)^added +a +/do/0/a$`, c.out.String())
	require.Regexp(t, `(?m)^added +lib/f.yaml$`, c.out.String())
	require.Regexp(t, `(?m)^removed +greet`, c.out.String())
}

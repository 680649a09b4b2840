// Package clients_test generates clients from the OpenAPI document that a server returns, and uses them against that
// server.
//
// Each client is compiled with a program of testdata, which reads the members and errors that the document describes by
// their types, and prints what the server answered. Nothing that is generated is kept. The generators are pinned by
// tools/go.mod and ui/package-lock.json.
package clients_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/oapi-codegen/runtime" // The generated client imports it, so this module requires it.
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// refusal is an error of the API as a client sees it.
type refusal struct {
	Status int
	Code   int // of google.rpc.Code
	Reason string
}

// report is what the program of a client prints.
type report struct {
	Workflow string // as read by its name, which has a slash
	Run      string
	Status   string
	Message  string   // of the run's output
	Listed   []string // runs that are completed or failed
	Failed   []string // runs that are failed
	Accepted []string // IDs of the events
	Unknown  refusal  // of a run that does not exist
	// Refusals of a call without a token, and with one that has too weak a role.
	WithoutToken, WithoutRole refusal
}

func TestGeneratedClients(t *testing.T) {
	t.Parallel()
	store := platform.SQLite(t)
	token := firstToken(t, store)
	server := platform.StartServer(t, platform.ServerOptions{
		Temporal: platform.StartTemporal(t).Address, Store: store, Env: []string{"SIGNALBOX_AUTH_MODE=tokens"},
	})
	status, text, err := server.Get(t.Context(), "/openapi.yaml")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status, text)
	document := write(t, t.TempDir(), "openapi.yaml", text)

	t.Run("the document is valid", func(t *testing.T) {
		t.Parallel()
		node(t, "testdata/typescript/validate.js", document)
	})
	for name, build := range map[string]func(t *testing.T, document string) *exec.Cmd{
		"go": buildGo, "typescript": buildTypeScript} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := platform.Document(name, "  - greet:\n      set:\n        message: ${ \"Hello, \" + .name + \"!\" }\n")
			program := build(t, document)
			program.Args = append(program.Args, write(t, t.TempDir(), "workflow.yaml", source))
			program.Env = platform.Environment(t, "SIGNALBOX_ADDRESS="+server.URL, "SIGNALBOX_TOKEN="+token)
			var got report
			require.NoError(t, json.Unmarshal([]byte(output(t, program)), &got))

			require.NotEmpty(t, got.Run)
			require.Regexp(t, `^t[0-9a-f]{8}/`+name+`$`, got.Workflow)
			require.Equal(t, report{
				Workflow: got.Workflow, Run: got.Run, Status: "completed", Message: "Hello, Ada!",
				Listed: []string{got.Run}, Failed: []string{}, Accepted: []string{"of-" + got.Run},
				Unknown:      refusal{http.StatusNotFound, 5, "RUN_NOT_FOUND"},
				WithoutToken: refusal{http.StatusUnauthorized, 16, "UNAUTHENTICATED"},
				WithoutRole:  refusal{http.StatusForbidden, 7, "PERMISSION_DENIED"},
			}, got)
		})
	}
}

// firstToken makes the first token of a database, which is an administrator's.
func firstToken(t *testing.T, store platform.Store) string {
	t.Helper()
	r := platform.Run(t, platform.Command{
		Binary: platform.ServerBinary(t), Args: []string{"token", "create", "--bootstrap", "--name", "ada"},
		Env: []string{"SIGNALBOX_STORE_DRIVER=" + store.Driver, "SIGNALBOX_STORE_DSN=" + store.DSN},
	})
	require.Equal(t, platform.ExitOK, r.Code, r.String())
	return strings.TrimSpace(r.Stdout)
}

// buildGo generates a client with oapi-codegen and compiles it with the program. The package of the client exists in
// the overlay of this build only.
func buildGo(t *testing.T, document string) *exec.Cmd {
	t.Helper()
	folder := t.TempDir()
	client, program := filepath.Join(folder, "client.go"), filepath.Join(folder, "program")
	// These are the options that docs/reference/api.md names.
	generate := platform.Go(t, "tool", "oapi-codegen", "-generate", "client,types", "-package", "client",
		"-response-type-suffix", "Answer", "-o", client, document)
	generate.Dir = "../../tools"
	output(t, generate)
	overlay, err := json.Marshal(
		map[string]any{"Replace": map[string]string{absolute(t, "testdata/go/client/client.go"): client}})
	require.NoError(t, err)
	output(t, platform.Go(t, "build", "-buildvcs=false", "-overlay", write(t, folder, "overlay.json", string(overlay)),
		"-o", program, "./testdata/go/program"))
	return exec.CommandContext(t.Context(), program)
}

// buildTypeScript generates the types of a client with openapi-typescript and compiles them with the program, which
// calls the API with openapi-fetch.
func buildTypeScript(t *testing.T, document string) *exec.Cmd {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"program.ts", "tsconfig.json", "package.json"} {
		content, err := os.ReadFile(filepath.Join("testdata/typescript", name))
		require.NoError(t, err)
		write(t, folder, name, string(content))
	}
	require.NoError(t, os.Symlink(absolute(t, packages), filepath.Join(folder, "node_modules")))
	node(t, packages+"/openapi-typescript/bin/cli.js", document, "-o", filepath.Join(folder, "signalbox.ts"))
	node(t, packages+"/typescript7/bin/tsc", "--project", folder)
	return nodeCommand(t, filepath.Join(folder, "program.js"))
}

// packages is the folder into which npm installs the packages of the web UI, with the generator among them.
const packages = "../../ui/node_modules"

// node runs a program with Node.js and requires that it succeeds.
func node(t *testing.T, args ...string) {
	t.Helper()
	output(t, nodeCommand(t, args...))
}

// nodeCommand is a command of Node.js. It skips the test if Node.js or the packages are not installed.
func nodeCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if _, err := os.Stat(packages + "/openapi-typescript"); err != nil {
		t.Skip("the packages of the web UI are not installed; `make test` and `npm ci` in ui install them")
	}
	// scripts/require-node.sh installs the second one where the first is missing or too old.
	binary := absolute(t, "../../.build/node/node_modules/.bin/node")
	if _, err := os.Stat(binary); err != nil {
		if binary, err = exec.LookPath("node"); err != nil {
			t.Skip("Node.js is not installed; `make test` installs it")
		}
	}
	return exec.CommandContext(t.Context(), binary, args...)
}

// output runs a command, requires that it succeeds, and returns what it printed on its standard output.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	require.NoError(t, err, "%s\n%s%s", strings.Join(cmd.Args, " "), &stdout, &stderr)
	return stdout.String()
}

func write(t *testing.T, folder, name, content string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	require.NoError(t, err)
	return path
}

package cli_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/config"
)

func TestUsageErrorsAreOneLine(t *testing.T) {
	t.Parallel()
	shell := newShell(t, "")
	tests := map[string][]string{
		"nothing":                        {`"nothing" is no command of "signalbox"`, "signalbox --help"},
		"runn list":                      {`"runn"`, `did you mean "run"`},
		"run strat hello":                {`"strat"`, `"start"`, "signalbox run --help"},
		"run start":                      {"too few arguments", "signalbox run start NAME"},
		"run start a b":                  {`"b" is one argument too many`, "NAME"},
		"run start a --inputt x":         {"--inputt", "signalbox run start --help"},
		"run list --limit many":          {"many", "--limit"},
		"run list --limit -1":            {"--limit", "-1"},
		"run list --status finished":     {"finished", "completed"},
		"run list --since tomorrow":      {"--since", "tomorrow", "7d"},
		"run list --since 1h --until 2h": {"--since 1h", "not before", "--until 2h"},
		"run list --order best":          {"best", "newest"},
		"run list -o xml":                {`unknown output format "xml"`, "json"},
		"run list --address ftp://h":     {"ftp", "host:port"},
		"run list --address http://":     {"the host is missing"},
		"run list --address h:p:q":       {"h:p:q"},
		"workflow validate":              {"FILE..."},
		"workflow diff a 1":              {"NAME V1 V2"},
		"audit list --until never":       {"--until"},
		"event send --type t":            {"--source is missing"},
		"event send --source s":          {"--type is missing"},
		"event list --status done":       {"done", "pending, routed, unmatched, rejected"},
		"event list --limit -1":          {"--limit"},
		"event show":                     {"event show ID", "--position"},
		"event show 1 --position 2":      {"--position", "leave out"},
		"event show --position 0":        {"--position", "begin with 1"},
		"event redeliver a b":            {"ID"},
		"dispatcher show":                {"PROJECT"},
		"dispatcher handover":            {"PROJECT"},
		"dispatcher list --state well":   {"well", "routing"},
		"dispatcher reconcile now":       {"now"},
		"worker list --state gone":       {"gone", "alive"},
		"completion tcsh":                {"tcsh"},
		"completion bash extra":          {"extra"},
		"check-config --listen":          {"--listen"},
		"check-config --liste=x":         {"--liste"},
		"version --project x":            {"--project"},
		"context set a --address ftp:x":  {"host:port"},
	}
	for line, parts := range tests {
		requireRefusal(t, shell.run(t, strings.Fields(line)...), exit.Usage, parts...)
	}
}

func TestCommandHelp(t *testing.T) {
	t.Parallel()
	shell := newShell(t, "")
	for _, args := range [][]string{{}, {"--help"}, {"run"}, {"run", "start", "--help"}, {"help", "workflow"}} {
		c := shell.run(t, args...)
		require.Zero(t, c.code, args)
		require.Contains(t, c.out.String(), "Usage:", args)
		require.Empty(t, c.err.String())
	}
}

func TestFlagsBeforeCommand(t *testing.T) {
	t.Parallel()
	_, a := sh(t)
	address, _ := serve(t, a, "")
	c := newShell(t, "127.0.0.1:1").run(t, "--address", address, "--project=shop", "-o", "json", "run", "list")
	require.Zero(t, c.code, c.err.String())
	require.Equal(t, "shop", last[*signalboxv1.ListRunsRequest](t, a).GetProject())
}

func TestProjectsAndAudit(t *testing.T) {
	t.Parallel()
	shell, a := sh(t)
	require.Regexp(t, `(?m)^default +operator, publisher`, shell.run(t, "project", "list").out.String())
	require.Contains(t, shell.run(t, "project", "list", "-o", "wide").out.String(), "signalbox-default")
	require.Contains(t, shell.run(t, "project", "create", "shop", "--description", "the shop", "-o", "json").out.String(),
		`"description": "the shop"`)
	requireRefusal(t, shell.run(t, "project", "create", "default"), exit.Conflict, "PROJECT_EXISTS")
	require.Regexp(t, `(?m)^project +default$`, shell.run(t, "project", "show", "default").out.String())
	requireRefusal(t, shell.run(t, "project", "show", "nope"), exit.NotFound, "PROJECT_NOT_FOUND")

	require.Regexp(t, `(?m)^2026-01-31T12:00:00Z +local +run.cancel +run-1 +wrong customer$`,
		shell.run(t, "audit", "list").out.String())
	require.Equal(t, "7\n", shell.run(t, "audit", "list", "-o", "name").out.String())
	require.Zero(t, shell.run(t, "audit", "list", "--action", "run.cancel", "--subject", "run-1", "--actor", "local", "-o",
		"json").code)
	request := last[*signalboxv1.ListAuditRequest](t, a)
	require.Equal(t, []string{"run.cancel", "run-1", "local"},
		[]string{request.GetAction(), request.GetSubject(), request.GetActor()})
}

func TestProjectSet(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]*signalboxv1.UpdateProjectRequest{
		"--max-steps 500":              {MaxSteps: new(int64(500))},
		"--max-steps none":             {MaxSteps: new(int64(0))},
		"--end-poison":                 {EndPoison: new(true)},
		"--end-poison=false":           {EndPoison: new(false)},
		"--description= --max-steps 0": {Description: new(""), MaxSteps: new(int64(0))},
	} {
		shell, a := sh(t)
		c := shell.run(t, append([]string{"project", "set", "default"}, strings.Fields(line)...)...)
		require.Zero(t, c.code, "%s: %s", line, c.err.String())
		want.Name = "default"
		sent := last[*signalboxv1.UpdateProjectRequest](t, a)
		require.True(t, proto.Equal(want, sent), "%s: %v", line, sent)
		require.Regexp(t, `(?m)^max steps +(500|the limit of the servers)$`, c.out.String())
		require.Regexp(t, `(?m)^end poison +(true|false)$`, c.out.String())
	}
	shell, _ := sh(t)
	requireRefusal(t, shell.run(t, "project", "set", "default"), exit.Usage, "nothing to set")
	requireRefusal(t, shell.run(t, "project", "set", "default", "--max-steps", "many"), exit.Usage, `--max-steps "many"`)
	requireRefusal(t, shell.run(t, "project", "set", "default", "--max-steps", "-1"), exit.Usage, `--max-steps "-1"`)
	requireRefusal(t, shell.run(t, "project", "set", "nope", "--end-poison"), exit.NotFound, `set project "nope"`,
		"PROJECT_NOT_FOUND")
}

func TestContexts(t *testing.T) {
	t.Parallel()
	_, a := sh(t)
	address, _ := serve(t, a, "")
	shell := newShell(t, "")
	delete(shell.env, "SIGNALBOX_ADDRESS")
	require.Contains(t, shell.run(t, "context", "list").err.String(), "no contexts")
	require.Zero(t, shell.run(t, "context", "set", "here", "--address", address, "--project", "shop").code)
	require.Zero(t, shell.run(t, "context", "set", "there", "--address", "127.0.0.1:1").code)
	require.Zero(t, shell.run(t, "run", "list").code, "the first context is current")
	require.Equal(t, "shop", last[*signalboxv1.ListRunsRequest](t, a).GetProject())
	shell.env["SIGNALBOX_PROJECT"] = "var"
	require.Zero(t, shell.run(t, "run", "list").code)
	require.Equal(t, "var", last[*signalboxv1.ListRunsRequest](t, a).GetProject(), "a variable wins over the context")
	require.Zero(t, shell.run(t, "run", "list", "--project", "flag").code)
	require.Equal(t, "flag", last[*signalboxv1.ListRunsRequest](t, a).GetProject(), "a flag wins over both")

	require.Zero(t, shell.run(t, "context", "use", "there").code)
	requireRefusal(t, shell.run(t, "run", "list"), exit.Unavailable, "127.0.0.1:1")
	var found []struct {
		Name    string `json:"name"`
		Current bool   `json:"current"`
		Address string `json:"address"`
	}
	require.NoError(t, json.Unmarshal([]byte(shell.run(t, "context", "list", "-o", "json").out.String()), &found))
	require.Len(t, found, 2)
	require.True(t, found[1].Current)
	require.Equal(t, address, found[0].Address)
	requireRefusal(t, shell.run(t, "context", "use", "nowhere"), exit.NotFound, "nowhere")
	require.Zero(t, shell.run(t, "context", "delete", "there").code)
	requireRefusal(t, shell.run(t, "context", "delete", "there"), exit.NotFound, "there")

	path := filepath.Join(shell.env["HOME"], ".config", "signalbox", "config.yaml")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, os.WriteFile(path, []byte("current: gone\n"), 0o600))
	requireRefusal(t, shell.run(t, "run", "list"), exit.Usage, `"gone"`, "context use")
	require.NoError(t, os.WriteFile(path, []byte("curent: x\n"), 0o600))
	requireRefusal(t, shell.run(t, "run", "list"), exit.Usage, "config.yaml", "curent")
	require.Zero(t, shell.run(t, "run", "list", "--address", address).code, "an address given needs no context")
}

func TestCheckConfigReportsAllProblems(t *testing.T) {
	t.Parallel()
	shell := newShell(t, "")
	bad := write(t, "signalbox.yaml", "lisen: x\nroles: [cook]\n")
	c := shell.run(t, "check-config", "--config", bad)
	require.Equal(t, exit.Failed, c.code)
	require.Equal(t, 2, strings.Count(c.out.String(), "\n"), c.out.String())
	require.Contains(t, c.out.String(), `lisen (`+bad+`:1): is not a key, did you mean "listen"?`)
	shell.env["SIGNALBOX_LOG_LEVEL"] = "loud"
	c = shell.run(t, "check-config", "--listen", "0.0.0.0:1", "-o", "json")
	var problems []struct {
		Source string `json:"source"`
	}
	require.NoError(t, json.Unmarshal([]byte(c.out.String()), &problems))
	require.Equal(t, []string{"--listen", "SIGNALBOX_LOG_LEVEL"}, []string{problems[0].Source, problems[1].Source})
	delete(shell.env, "SIGNALBOX_LOG_LEVEL")
	c = shell.run(t, "check-config")
	require.Zero(t, c.code)
	require.Equal(t, "no violations\n", c.err.String())
}

func TestVersion(t *testing.T) {
	t.Parallel()
	shell, _ := sh(t)
	require.Regexp(t, `^signalbox 1\.2\.3 \(.*go1.*\)\n$`, shell.run(t, "version").out.String())
	licences := shell.run(t, "version", "--licences").out.String()
	require.Contains(t, licences, "google.golang.org/grpc v")
	require.Contains(t, licences, "\nelkjs ")
	require.Contains(t, licences, "END OF TERMS AND CONDITIONS")
	requireRefusal(t, shell.run(t, "version", "--licences", "--server"), exit.Usage, "exclude each other")
	require.Contains(t, shell.run(t, "version", "--server").out.String(), "server 9.9.9 (interpreter 1, host-1-abc)")
	var info map[string]any
	require.NoError(t, json.Unmarshal([]byte(shell.run(t, "version", "--server", "-o", "json").out.String()), &info))
	require.Equal(t, "1.2.3", info["version"])
	require.Equal(t, "9.9.9", info["server"].(map[string]any)["version"])
}

func TestForeignServerIsReported(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusOK, http.StatusNotFound, http.StatusInternalServerError} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
		}))
		t.Cleanup(server.Close)
		requireRefusal(t, newShell(t, server.URL).run(t, "run", "list"), exit.Failed, "list runs", "Signalbox")
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	shell, _ := sh(t)
	for _, name := range []string{"bash", "zsh", "fish", "powershell"} {
		c := shell.run(t, "completion", name)
		require.Zero(t, c.code)
		require.Contains(t, c.out.String(), "__complete")
	}
	proposals := func(args ...string) string {
		c := shell.run(t, append([]string{"__complete"}, args...)...)
		require.Zero(t, c.code, c.err.String())
		return c.out.String()
	}
	require.Contains(t, proposals("run", "start", ""), "demo/hello\tSays hello")
	require.NotContains(t, proposals("run", "start", "demo/hello", ""), "demo/hello")
	require.Zero(t, shell.run(t, "run", "start", "hello").code)
	require.Contains(t, proposals("run", "show", ""), "run-1\tdemo/hello running")
	require.Contains(t, proposals("run", "list", "--status", ""), "timed_out")
	require.Contains(t, proposals("run", "list", "-o", ""), "yaml")
	shell.env["SIGNALBOX_ADDRESS"] = "127.0.0.1:1"
	require.Zero(t, shell.run(t, "context", "set", "here", "--address", "h:1").code)
	require.Contains(t, proposals("context", "use", ""), "here")
	require.NotContains(t, proposals("run", "start", ""), "demo",
		"a server that is away proposes nothing and fails nothing")
}

func TestExtraCommandsAreRegular(t *testing.T) {
	t.Parallel()
	run := func(err error, args ...string) (int, string) {
		var out, errs buffer
		code := cli.Run(t.Context(), cli.Options{Stdout: &out, Stderr: &errs, Commands: []*cobra.Command{{
			Use: "server", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return err },
		}}}, args)
		return code, errs.String()
	}
	code, text := run(config.Violations{{Path: "listen", Message: "is wrong"}, {Path: "roles", Message: "are wrong"}},
		"server")
	require.Equal(t, exit.Usage, code)
	require.Equal(t, "error: listen: is wrong\nroles: are wrong\n", text)
	code, text = run(exit.Errorf(exit.Unavailable, "the port is in use"), "server")
	require.Equal(t, exit.Unavailable, code)
	require.Equal(t, "error: the port is in use\n", text)
	code, _ = run(nil, "server")
	require.Zero(t, code)
	code, _ = run(nil, "server", "--nope")
	require.Equal(t, exit.Usage, code)
}

// Every command has documentation, and every flag has a description.
func TestEveryCommandAndFlagIsDocumented(t *testing.T) {
	t.Parallel()
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		require.NotEmpty(t, cmd.Short, cmd.CommandPath())
		for line := range strings.SplitSeq(cmd.Flags().FlagUsages(), "\n") {
			require.NotRegexp(t, `^ +(-\w, )?--[\w-]+( \w+)?$`, line, cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(cli.New(cli.Options{}))
}

package cli_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

// Two runs whose IDs begin alike.
const (
	firstID  = "019f5a3c-0000-7000-8000-000000000001"
	secondID = "019f5a3c-1111-7000-8000-000000000002"
)

func withRuns(t *testing.T) (*shell, *api) {
	t.Helper()
	shell, a := sh(t)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range []string{firstID, secondID} {
		a.runs = append(a.runs, &signalboxv1.Run{
			Id: id, Project: "default", Workflow: "demo/hello", Version: "1.0.0", Status: "running"})
	}
	return shell, a
}

func TestOutputAsNames(t *testing.T) {
	t.Parallel()
	shell, _ := withRuns(t)
	require.Equal(t, firstID+"\n"+secondID+"\n", shell.run(t, "run", "list", "-o", "name").out.String())
	require.Equal(t, firstID+"\n", shell.run(t, "run", "show", firstID, "-o", "name").out.String())
	require.Equal(t, "demo/hello\n", shell.run(t, "workflow", "show", "hello", "-o", "name").out.String())
	require.Equal(t, "1.0.0\n", shell.run(t, "workflow", "versions", "hello", "-o", "name").out.String())
	requireRefusal(t, shell.run(t, "version", "-o", "name"), exit.Usage, "has no names", "json")
}

func TestOutputByExpression(t *testing.T) {
	t.Parallel()
	shell, _ := withRuns(t)
	require.Equal(t, firstID+"\n"+secondID+"\n", shell.run(t, "run", "list", "--jq", ".[].id").out.String())
	require.Equal(t, `{"n":2}`+"\n", shell.run(t, "run", "list", "-q", "{n: length}", "-o", "json").out.String())
	requireRefusal(t, shell.run(t, "run", "list", "--jq", ".["), exit.Usage, "--jq", "no jq expression")
	requireRefusal(t, shell.run(t, "run", "list", "--jq", ".", "-o", "yaml"), exit.Usage, "reads JSON", "-o yaml")
	requireRefusal(t, shell.run(t, "run", "list", "--jq", ".id"), exit.Failed, "--jq")
}

func TestTablesWithoutHeads(t *testing.T) {
	t.Parallel()
	shell, _ := withRuns(t)
	require.Contains(t, shell.run(t, "run", "list").out.String(), "WORKFLOW")
	c := shell.run(t, "run", "list", "--no-headers")
	require.NotContains(t, c.out.String(), "WORKFLOW")
	require.Equal(t, 2, strings.Count(c.out.String(), "\n"))
}

func TestRunsByPrefixOfID(t *testing.T) {
	t.Parallel()
	shell, _ := withRuns(t)
	require.Equal(t, secondID+"\n", shell.run(t, "run", "show", "019f5a3c-1", "-o", "name").out.String())
	require.Equal(t, firstID+"\n", shell.run(t, "run", "cancel", "019f5a3c-0", "--reason", "x", "-o", "name").out.String())
	requireRefusal(t, shell.run(t, "run", "show", "019f5a3c"), exit.Usage, "several runs", firstID, secondID)
	requireRefusal(t, shell.run(t, "run", "show", "019f9999"), exit.NotFound, "019f9999", "RUN_NOT_FOUND")
}

func TestAliasesOfVerbs(t *testing.T) {
	t.Parallel()
	shell, _ := withRuns(t)
	require.Equal(t, shell.run(t, "run", "list", "-o", "json").out.String(),
		shell.run(t, "run", "ls", "-o", "json").out.String())
	require.Equal(t, firstID+"\n", shell.run(t, "run", "get", firstID, "-o", "name").out.String())
	requireRefusal(t, shell.run(t, "workflow", "rm", "hello"), exit.Refused, "WORKFLOW_HAS_OPEN_RUNS")
}

func TestVersionFlag(t *testing.T) {
	t.Parallel()
	shell := newShell(t, "")
	require.Equal(t, shell.run(t, "version").out.String(), shell.run(t, "--version").out.String())
}

// On a terminal, what deletes something or ends many runs asks first.
func TestConfirmationOnTerminal(t *testing.T) {
	t.Parallel()
	shell, a := withRuns(t)
	shell.interactive = true
	for line, question := range map[string]string{
		"workflow delete hello":                             `Delete workflow "hello" of project default? Its draft is lost. [y/N] `,
		"workflow stop hello -r x":                          `Pause workflow "hello" and cancel 1 run of 3 open? [y/N] `,
		"batch start --action cancel --status running -r x": "Cancel 1 run of 2 selected? [y/N] ",
		"batch start --action terminate -r x run-1":         "Terminate 1 run of 1 selected? [y/N] ",
		"view delete team":                                  `Delete the shared view "team"? [y/N] `,
		"token revoke t1":                                   `Revoke token "t1"? It cannot be made valid again. [y/N] `,
	} {
		shell.stdin = "n\n"
		c := shell.run(t, strings.Fields(line)...)
		require.Equal(t, exit.Failed, c.code, line)
		require.Equal(t, question+"error: not confirmed; nothing was changed\n", c.err.String(), line)
		shell.stdin = ""
		require.Contains(t, shell.run(t, strings.Fields(line)...).err.String(), "not confirmed",
			"the end of the input is no yes")
	}
	for _, request := range requested[*signalboxv1.StartBatchRequest](a) {
		require.True(t, request.GetDryRun(), "%v", request)
	}

	shell.stdin = "yes\n"
	require.Zero(t, shell.run(t, "batch", "start", "--action", "cancel", "--status", "running", "-r", "x").code)
	require.Equal(t, int64(2), last[*signalboxv1.StartBatchRequest](t, a).GetExpectedTotal(),
		"no more runs than were shown")
	require.Zero(t, shell.run(t, "workflow", "stop", "hello", "-r", "x").code)
	require.Equal(t, int64(3), last[*signalboxv1.StopWorkflowRequest](t, a).GetExpectedOpen())
	shell.stdin = ""
	require.Zero(t, shell.run(t, "workflow", "stop", "hello", "-r", "x", "--yes").code)
	shell.interactive = false
	c := shell.run(t, "workflow", "stop", "hello", "-r", "x")
	require.Zero(t, c.code)
	require.NotContains(t, c.err.String(), "[y/N]", "a script is not asked")
}

func requested[M proto.Message](a *api) (all []M) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, sent := range a.requests {
		if request, ok := sent.(M); ok {
			all = append(all, request)
		}
	}
	return all
}

func TestDryRunOfBatchNeedsNoReason(t *testing.T) {
	t.Parallel()
	shell, _ := withRuns(t)
	require.Zero(t, shell.run(t, "batch", "start", "--action", "cancel", "--all", "--dry-run").code)
	requireRefusal(t, shell.run(t, "batch", "start", "--action", "cancel", "--all"), exit.Usage, "--reason is missing")
}

func TestPeriodsOfLists(t *testing.T) {
	t.Parallel()
	shell, a := withRuns(t)
	for since, hours := range map[string][2]float64{
		"1w": {168, 169}, "2d": {48, 49}, "yesterday": {24, 48}, "today": {0, 24}} {
		before := time.Now()
		require.Zero(t, shell.run(t, "run", "list", "--since", since).code, since)
		age := before.Sub(last[*signalboxv1.ListRunsRequest](t, a).GetFilter().GetSince().AsTime()).Hours()
		require.GreaterOrEqual(t, age, hours[0]-0.01, since)
		require.LessOrEqual(t, age, hours[1], since)
	}
	require.Zero(t, shell.run(t, "run", "list", "--since", "2026-01-31 14:05").code)
	require.Equal(t, "2026-01-31T14:05:00Z",
		last[*signalboxv1.ListRunsRequest](t, a).GetFilter().GetSince().AsTime().Format("2006-01-02T15:04:05Z07:00"))
}

// The help of each command has one line of purpose, an example or no arguments to show, and lists the flags that all
// commands share apart.
func TestHelpListsGlobalFlagsApart(t *testing.T) {
	t.Parallel()
	shell := newShell(t, "")
	help := shell.run(t, "run", "list", "--help").out.String()
	own, shared, found := strings.Cut(help, "\nGlobal flags:\n")
	require.True(t, found)
	require.Contains(t, own, "-s, --status")
	require.NotContains(t, own, "--address")
	require.Contains(t, shared, "--address")
	require.Contains(t, shared, "-p, --project")
	root := shell.run(t).out.String()
	for _, group := range []string{
		"Workflows, runs and events:", "The platform:", "Projects and access:", "On this machine:"} {
		require.Contains(t, root, group)
	}
	require.NotContains(t, shell.run(t, "run").out.String(), "signalbox run [flags]")
}

// A short flag means the same everywhere.
func TestShortFlagsMeanTheSame(t *testing.T) {
	t.Parallel()
	meaning := map[string]map[string]bool{}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if flag.Shorthand == "" {
				return
			}
			if meaning[flag.Shorthand] == nil {
				meaning[flag.Shorthand] = map[string]bool{}
			}
			meaning[flag.Shorthand][flag.Name] = true
		})
	}
	visit(cli.New(cli.Options{}))
	for short, names := range meaning {
		if short == "w" { // to wait for an end, and to watch
			require.Equal(t, map[string]bool{"wait": true, "watch": true}, names)
			continue
		}
		require.Len(t, names, 1, "-%s: %v", short, names)
	}
}

func TestWrongFlagsSayWhatIsRight(t *testing.T) {
	t.Parallel()
	shell, _ := sh(t)
	requireRefusal(t, shell.run(t, "run", "list", "-n", "abc"), exit.Usage, `--limit "abc" is not a whole number`)
	requireRefusal(t, shell.run(t, "run", "list", "--timeout", "5"), exit.Usage,
		`--timeout "5" is not a duration, as in 90s or 5m`)
	requireRefusal(t, shell.run(t, "webhook", "create", "x", "--url", "http://127.0.0.1:1"), exit.Usage,
		"--type is missing")
	for _, args := range [][]string{{"run", "list", "-n", "abc"}, {"run", "list", "--timeout", "5"}} {
		require.NotContains(t, shell.run(t, args...).err.String(), "strconv")
	}
	help := shell.run(t, "--address", "127.0.0.1:1", "--project", "shop", "run", "--help")
	require.Zero(t, help.code, help)
	require.Contains(t, help.out.String(), "Commands:")
	require.NotContains(t, help.out.String(), "--address")
}

func TestOwnCommandsDoNotTakeTheFlagsOfAServer(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	own := &cobra.Command{Use: "dev", RunE: func(*cobra.Command, []string) error { return nil }}
	own.AddCommand(&cobra.Command{Use: "temporal", RunE: func(*cobra.Command, []string) error { return nil }})
	code := cli.Run(t.Context(), cli.Options{Stdout: &out, Stderr: &errs, Commands: []*cobra.Command{own}},
		[]string{"dev", "--address", "127.0.0.1:1"})
	require.Equal(t, exit.Usage, code)
	require.Contains(t, errs.String(), "unknown flag: --address")
}

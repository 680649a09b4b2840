package examples_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// page is a page whose commands are run as a reader would: in their order, in an empty folder, in a project of its own.
type page struct {
	name string
	// the project in which its commands run, where it is not one of its own: that of the page before, or default
	in       string
	before   []string          // commands that make what the page refers to
	id       string            // prints what ID stands for; the newest run without it
	words    map[string]string // what other words in capitals stand for
	commands int               // at least so many are run: a page whose blocks are not found fails

	elsewhere map[string]string // beginnings of commands that this test cannot run, and why
}

// project is the name of the page's project.
func (p page) project() string {
	return cmp.Or(p.in, strings.TrimSuffix(path.Base(p.name), ".md"))
}

// failing makes a workflow of which a run has failed, and the file of a version that does not fail.
func failing() []string {
	const document = `printf "document: {dsl: '1.0.3', namespace: shop, name: order, version: '%s'}\ndo:\n  - a: {%s}\n" `
	return []string{
		document + `1.0.0 "raise: {error: {type: 'https://example.com/broken', status: 500, title: Broken}}" > order.yaml`,
		"signalbox workflow publish order.yaml",
		"signalbox run start order --wait # exit code 10",
		document + `1.1.0 "wait: {seconds: 1}" > order.yaml`,
	}
}

// pages returns the pages. secrets is the folder of the secrets of the server.
func pages(examples, secrets string) []page {
	problem := "signalbox problem list --state all --kind failure --project what-is-wrong"
	return []page{
		{name: "quickstart.md", before: []string{
			"for f in $(ls " + examples + "/*.yaml | grep -v -e test.yaml -e openapi.yaml); do signalbox workflow publish $f || exit 1; done"}, commands: 15},
		{name: "tutorial.md", in: "quickstart", commands: 26},
		{
			name: "secrets.md", in: platform.DefaultProject, before: []string{"ln -s " + secrets + " secrets"}, commands: 3,
			elsewhere: map[string]string{"exec vault": "it is a line of a script for Vault"},
		},
		{name: "tenancy.md", commands: 10},
		{name: "quotas.md", commands: 5}, // in the project shop of the page before
		{name: "events.md", before: append(failing(), `printf "`+reportSource+`" | signalbox workflow publish -`), commands: 11},
		{
			name: "what-is-wrong.md", words: map[string]string{"NUMBER": "1", "NAME": "what-is-wrong",
				"TEXT": "test", "KEY": "$group", "PROBLEM": "$(" + problem + " -o name | head -1)"}, commands: 12,
			// The page replays one of two runs that have failed, so that the other one is still a problem.
			before: append(failing(), "signalbox run start order --version 1.0.0 --wait # exit code 10",
				"until "+problem+" -o name | grep .; do sleep 0.2; done",
				"group=$("+problem+" -o json --jq '.[0].failureGroup')"),
		},
		{
			// The batch of the page's last commands has runs that failed again.
			name: "batches.md", id: "cat batch.txt", commands: 7,
			before: append(failing(), "signalbox batch start --action replay --status failed --reason again --wait || true",
				"signalbox batch list -o name | head -1 > batch.txt", "signalbox workflow publish order.yaml",
				"signalbox run list -o name > ids.txt"),
		},
		{name: "connection.md", commands: 5},
		{name: "dispatchers.md", commands: 5},
		{name: "maintenance.md", commands: 3},
		{
			name: "webhooks.md", words: map[string]string{
				"KEY": "routing", "msg_6b1d…": "$(signalbox webhook deliveries audit --jq '.[0].id')"}, commands: 8,
			elsewhere: map[string]string{"scripts/services.sh": "a benchmark, minutes long"},
		},
		{name: "publishing.md", commands: 1},
		{name: "access.md", before: []string{
			"for token in $(signalbox token list -o name); do signalbox token revoke $token --reason 'of a page before'; done"},
			id: "signalbox token list -o name | head -1", commands: 4, elsewhere: map[string]string{
				"(umask 077; head": "it writes into /etc", "signalbox token create --bootstrap": "it needs a database; " +
					"integration/bootstrap_test.go runs it",
				"export SIGNALBOX_ADDRESS": "no server of this test requires a token",
			}},
		{
			name: "install.md", before: []string{"mkdir examples && ln -s " + examples + " examples/workflows"}, commands: 3,
			elsewhere: map[string]string{
				"install -": "it writes into the system's folders", "systemctl": "it needs systemd; packaging/processes_test.go " +
					"reads the units", "cd deploy/compose": "containers",
				"./setup.sh": "containers; packaging/containers_test.go runs it", "docker": "containers; " +
					"packaging/containers_test.go runs them",
				"signalbox-server check-config":             "it reads a file in /etc; the files of deploy are checked in packaging",
				"export PGPASSFILE":                         "for the next command",
				"signalbox-server token create --bootstrap": "it needs a database; integration/bootstrap_test.go runs it",
				"export SIGNALBOX_ADDRESS":                  "no server of this test requires a token",
			},
		},
	}
}

// otherPages are pages of which this test runs no command, with the reason.
func otherPages() map[string]string {
	return map[string]string{
		"least-privilege.md": "all need Postgres or Redis; test/privilege runs them",
		"libraries.md":       "it adds a module",
		"migration.md":       "it needs a database of another engine; integration/import_test.go runs it",
		"operations.md":      "test/procedures follows it",
		"observability.md":   "containers, and profiles of a server with a port for them",
		"runners.md":         "it starts a server of its own; integration/runner_test.go starts one",
		"sensitive.md":       "it writes into /etc",
		"editors.md":         "its commands print schemas, which the tests of the command line compare",
		"testing.md":         "no command needs a platform; dsl/workflowtest tests the examples of the page",
	}
}

// Every page with commands is one whose commands are run, or has a reason.
func TestPagesWithCommandsAreRun(t *testing.T) {
	t.Parallel()
	run := map[string]bool{}
	for _, p := range pages("", "") {
		run[p.name] = true
	}
	found := 0
	// test/operations runs the commands of runbooks, test/procedures those of docs/operations.md
	for _, folder := range []string{"", "design/"} {
		files, err := filepath.Glob("../../docs/" + folder + "*.md")
		require.NoError(t, err)
		for _, file := range files {
			name := folder + filepath.Base(file)
			has := len(steps(t, name)) > 0
			require.Equal(t, has, run[name] || otherPages()[name] != "", "%s: commands in it: %t", name, has)
			require.False(t, run[name] && otherPages()[name] != "", name)
			found++
		}
	}
	require.Greater(t, found, 30)
}

// Each command of a page succeeds, or exits with the code that its comment says, and prints what a console block shows.
func TestCommandsOfPagesDoWhatTheyShow(t *testing.T) {
	t.Parallel()
	examples, err := filepath.Abs(folder)
	require.NoError(t, err)
	secrets := t.TempDir()
	environment := []string{"SIGNALBOX_SECRETS_DIR=" + secrets}
	for _, s := range steps(t, "secrets.md") {
		if variable, found := strings.CutPrefix(s.command, "export SIGNALBOX_SECRET_"); found {
			environment = append(environment, "SIGNALBOX_SECRET_"+variable)
		}
	}
	server := platform.StartDevIn(t, environment)
	all := pages(examples, secrets)
	for _, p := range all {
		if p.in != "" {
			continue
		}
		r := server.CLI(t, "project", "create", p.project())
		require.Equal(t, platform.ExitOK, r.Code, r.String())
	}
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) { //nolint:paralleltest // the next page would start its runs while the servers are in maintenance
			newReader(t, server, p).follow(t)
		})
	}
}

// step is one thing that a page asks its reader to do: to save a file, or to run a command.
type step struct {
	file, content string

	command string
	code    int
	shows   string // of a console block: its output
}

// steps reads the steps of a page: blocks after "Save this as `FILE`:", and the lines of blocks of sh and console.
func steps(t *testing.T, page string) (all []step) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", page))
	require.NoError(t, err)
	// A paragraph that ends with a colon may precede a block.
	block := regexp.MustCompile("(?ms)(?:[Ss]ave this as `([^`\n]+)`(?:[^\n]|\n[^\n])*?:\n\n)?^```([a-z]*)\n(.*?)^```$")
	for _, match := range block.FindAllStringSubmatch(string(text), -1) {
		switch content := match[3]; {
		case match[1] != "":
			all = append(all, step{file: match[1], content: content})
		case match[2] == "console":
			for _, part := range strings.Split("\n"+content, "\n$ ")[1:] {
				command, output, _ := strings.Cut(part+"\n", "\n")
				all = append(all, commandStep(command, output))
			}
		case match[2] == "sh":
			for line := range strings.Lines(strings.ReplaceAll(content, "\\\n", " ")) {
				if s := commandStep(strings.TrimSpace(line), ""); !elsewhere(s.command) {
					all = append(all, s)
				}
			}
		}
	}
	return all
}

// commandStep reads the exit code from the comment behind a command: "# exit code 10".
func commandStep(line, shows string) step {
	s := step{command: line, shows: shows}
	if match := regexp.MustCompile(`#.*\bexit code (\d+)`).FindStringSubmatch(line); match != nil {
		_, _ = fmt.Sscan(match[1], &s.code)
	}
	return s
}

// elsewhere reports whether a command is not for the terminal in which a page's commands are run: it builds or starts
// what the test has started, or is no command.
func elsewhere(command string) bool {
	for _, prefix := range []string{"#", "git clone", "make ", "export PATH=", "signalbox dev", "python3 -m http.server"} {
		if strings.HasPrefix(command, prefix) {
			return true
		}
	}
	return command == ""
}

// reader runs the commands of one page.
type reader struct {
	page    page
	server  *platform.Server
	folder  string
	service *httptest.Server // what `python3 -m http.server 9090 --directory service` would serve
	hook    *httptest.Server // a receiver of webhooks
	env     []string
}

func newReader(t *testing.T, server *platform.Server, p page) *reader {
	t.Helper()
	r := &reader{page: p, server: server, folder: t.TempDir()}
	r.service = httptest.NewServer(http.FileServer(http.Dir(filepath.Join(r.folder, "service"))))
	t.Cleanup(r.service.Close)
	r.hook = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(r.hook.Close)
	r.env = platform.Environment(t, append(server.ClientEnv(), "SIGNALBOX_PROJECT="+p.project(), platform.Path(t))...)
	return r
}

// follow does what the page says.
func (r *reader) follow(t *testing.T) {
	t.Helper()
	for _, command := range r.page.before {
		r.do(t, commandStep(command, ""))
	}
	commands, excluded := 0, map[string]bool{}
	for _, s := range steps(t, r.page.name) {
		if begin := r.page.excluded(s.command); begin != "" {
			excluded[begin] = true
			continue
		}
		if s.file != "" {
			r.save(t, s)
			continue
		}
		r.do(t, s)
		commands++
	}
	require.GreaterOrEqual(t, commands, r.page.commands)
	for begin := range r.page.elsewhere {
		require.True(t, excluded[begin], "the page has no command that begins with %q: delete the exception", begin)
	}
}

// excluded returns the beginning of a command that this test cannot run; empty for others.
func (p page) excluded(command string) string {
	for begin := range p.elsewhere {
		if command != "" && strings.HasPrefix(command, begin) {
			return begin
		}
	}
	return ""
}

// local replaces the addresses that pages show by those of the test.
func (r *reader) local(text string) string {
	text = strings.ReplaceAll(text, "127.0.0.1:8080", r.server.Address)
	text = strings.ReplaceAll(text, "https://hooks.example.com", r.hook.URL)
	text = strings.ReplaceAll(text, "/projects/default/", "/projects/"+r.page.project()+"/")
	return strings.ReplaceAll(text, "127.0.0.1:9090", r.service.Listener.Addr().String())
}

func (r *reader) save(t *testing.T, s step) {
	t.Helper()
	path := filepath.Join(r.folder, s.file)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(r.local(s.content)), 0o600))
}

// do runs one command. ID is the newest run; a variable that a command sets is kept for the next ones.
func (r *reader) do(t *testing.T, s step) {
	t.Helper()
	text := r.local(s.command)
	text = regexp.MustCompile(` ID\b`).ReplaceAllLiteralString(text,
		" $("+cmp.Or(r.page.id, "signalbox run list --limit 1 -o name")+")")
	for word, value := range r.page.words {
		text = regexp.MustCompile(`\b`+word+`(?:\b|$)`).ReplaceAllLiteralString(text, value)
	}
	if match := regexp.MustCompile(`^(?:export )?([A-Za-z_]+)=`).FindStringSubmatch(text); match != nil {
		text += "\ndeclare -px " + match[1] + " >> .variables"
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-uo", "pipefail", "-c", "touch .variables; . ./.variables\n"+text)
	cmd.Dir = r.folder
	cmd.Env = r.env
	out, err := cmd.CombinedOutput()
	require.Equal(t, s.code, exitCode(t.Context(), err), "%s\n%s", s.command, out)
	if s.shows != "" {
		require.NoError(t, shown(s.shows, string(out)), "%s\n%s", s.command, out)
	}
}

func exitCode(ctx context.Context, err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && ctx.Err() == nil:
		return exit.ExitCode()
	default:
		return -1
	}
}

// shown reports the first line of an output in a page that a command has not printed, in the order of the page. A line
// "…" stands for any number of lines. Times, durations, IDs and widths of columns differ.
func shown(page, printed string) error {
	lines := strings.Split(strings.TrimSpace(withoutVariation(printed)), "\n")
	skip := false
	for line := range strings.Lines(strings.TrimSpace(withoutVariation(page))) {
		line = strings.TrimSuffix(line, "\n")
		if line == "…" {
			skip = true
			continue
		}
		for skip && len(lines) > 0 && lines[0] != line {
			lines = lines[1:]
		}
		if len(lines) == 0 || lines[0] != line {
			return fmt.Errorf("the page shows %q, which is not printed there", line)
		}
		lines, skip = lines[1:], false
	}
	if len(lines) > 0 && !skip {
		return fmt.Errorf("the page does not show %q", lines[0])
	}
	return nil
}

// withoutVariation replaces what differs between two executions of a command.
func withoutVariation(text string) string {
	for _, r := range []struct{ pattern, by string }{
		{`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, "UUID"},
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`, "MOMENT"},
		{`(?m)^\d\d:\d\d:\d\d`, "TIME"},
		{`127\.0\.0\.1:\d+`, "ADDRESS"},
		{`\b(\d+(\.\d+)?(µs|ms|s|m|h))+\b`, "DURATION"},
		{`(?m) +$`, ""},
		{` {2,}`, "  "},
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.by)
	}
	return text
}

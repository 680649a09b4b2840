package pages_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/config/clientconfig"
	"github.com/signalbox-dev/signalbox/internal/hygiene"
	"github.com/signalbox-dev/signalbox/internal/hygiene/pages"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/explain"
)

const root = "../../.."

// plant writes an archive of files below a temporary folder.
func plant(t *testing.T, archive string) string {
	t.Helper()
	root := t.TempDir()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		path := filepath.Join(root, filepath.FromSlash(f.Name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, f.Data, 0o600))
	}
	return root
}

func render(violations []hygiene.Violation) string {
	text := ""
	for _, f := range violations {
		text += f.String() + "\n"
	}
	return text
}

func TestLinks(t *testing.T) {
	t.Parallel()
	violations, err := pages.Links(plant(t, "-- README.md --\n"+
		"# The title: of it\n"+
		"[ok](docs/a.md) [web](https://example.com/x) [heading](docs/a.md#second-part) [here](#the-title-of-it)\n"+
		"[gone](docs/b.md) and `[code](gone.md)`\n"+
		"```\n[fenced](gone.md)\n```\n"+
		"[no heading](docs/a.md#third)\n"+
		"-- docs/a.md --\n# First\n## Second part\n[up](../README.md) [folder](../docs)\n"))
	require.NoError(t, err)
	require.Equal(t, `README.md:3: links to "docs/b.md", which does not exist
README.md:7: links to "docs/a.md#third", but "a.md" has no such heading
`, render(violations))
}

func TestCommands(t *testing.T) {
	t.Parallel()
	folder := plant(t, "-- cli.md --\n"+
		"## signalbox server\nAnd a flag for each key of the [configuration](configuration.md).\n## signalbox dev\n| "+
		"`--data-dir folder` | x |\n### signalbox dev temporal\n## signalbox run\n### signalbox run start\n| `--input "+
		"file` | x |\n| `-o, --output format` | x |\n## signalbox version\n"+
		"-- configuration.md --\n| `roles` | `--roles` |\n"+
		"-- page.md --\n"+
		"signalbox prose is no command\n"+
		"```sh\n"+
		"signalbox run start hello --input x --output json   # --gone\n"+
		"bin/signalbox version\n"+
		"signalbox dev --data-dir x\n"+
		"signalbox-server run stop\n"+
		"./bin/signalbox walk\n"+
		"signalbox run start --inp x\n"+
		"```\n```yaml\nsignalbox walk\n```\n"+
		"```\n$ signalbox run start --gone\n```\n"+
		"`signalbox run halt ID`, `signalbox run`, `signalbox server --roles api`\n"+
		"1. A list:\n\n   ```sh\n   signalbox run wait\n   ```\n")
	violations, err := pages.Commands(folder, filepath.Join(folder, "cli.md"))
	require.NoError(t, err)
	require.Equal(t, `page.md:6: runs "signalbox-server run stop", which the reference does not have
page.md:7: runs "./bin/signalbox walk", which the reference does not have
page.md:8: gives --inp to "run start", which the reference does not have
page.md:14: gives --gone to "run start", which the reference does not have
page.md:16: runs "signalbox run halt", which the reference does not have
page.md:20: runs "signalbox run wait", which the reference does not have
`, render(violations))
}

func TestWorkflows(t *testing.T) {
	t.Parallel()
	folder := plant(t, "-- page.md --\n"+
		"```yaml\nencryption: {keys: {}}\n```\n"+
		"- a list:\n\n  ```yaml\n  # whole\n  document: x\n  do: []\n  ```\n"+
		"```yml\ndo:\n  - part\n```\n"+
		"```json\ndo: no YAML\n```\n")
	var seen []string
	violations, err := pages.Workflows(folder, func(source string) []string {
		seen = append(seen, source)
		return []string{"bad"}
	})
	require.NoError(t, err)
	require.Equal(t, []string{
		"# whole\ndocument: x\ndo: []\n",
		"document: {dsl: '1.0.3', namespace: example, name: example, version: '1.0.0'}\ndo:\n  - part\n",
	}, seen)
	require.Equal(t, "page.md:6: shows a workflow with a violation: bad\npage.md:11: shows a workflow with a violation: "+
		"bad\n", render(violations))
}

// described is the description of the service that workflows in pages call.
const described = `
openapi: 3.1.0
components: {securitySchemes: {token: {type: http, scheme: bearer}}}
paths:
  /customers/{customer}/orders:
    post:
      operationId: createOrder
      security: [{token: []}]
      parameters:
        - {name: customer, in: path, required: true, schema: {type: string}}
        - {name: dryRun, in: query, schema: {type: boolean}}
      requestBody:
        content: {application/json: {schema: {type: object, properties: {sku: {type: string}, quantity: {type: integer}}}}}
`

func TestWorkflowsInPagesAreValid(t *testing.T) {
	t.Parallel()
	seen := 0
	violations, err := pages.Workflows(root, func(source string) (wrong []string) {
		seen++
		resources := dsl.NewResources()
		resources.Add("https://shop.example/openapi.yaml", []byte(described))
		_, violations := dsl.Parse([]byte(source), dsl.WithResources(resources))
		for _, p := range violations {
			wrong = append(wrong, p.String())
		}
		return wrong
	})
	require.NoError(t, err)
	require.Empty(t, render(violations))
	require.GreaterOrEqual(t, seen, 9, "they are found")
}

func TestLinksInPagesExist(t *testing.T) {
	t.Parallel()
	violations, err := pages.Links(root)
	require.NoError(t, err)
	require.Empty(t, render(violations))
}

func TestCommandsInPagesExist(t *testing.T) {
	t.Parallel()
	violations, err := pages.Commands(root, filepath.Join(root, "docs/reference/cli.md"))
	require.NoError(t, err)
	require.Empty(t, render(violations))
}

// The page lists each title that an error of a run may have, and no other.
func TestErrorsOfRunsAreOnTheirPage(t *testing.T) {
	t.Parallel()
	var folders []string
	for _, folder := range []string{
		"dsl/httpmessage", "dsl/interp", "function", "internal/engine", "internal/engine/flow", "internal/engine/httpcall",
		"internal/engine/program",
		"internal/run",
		"internal/run/control", "internal/run/reconcile", "internal/run/start",
	} {
		folders = append(folders, filepath.Join(root, folder))
	}
	violations, err := pages.Titles(filepath.Join(root, "docs/failures.md"), folders)
	require.NoError(t, err)
	require.Empty(t, render(violations))
}

func TestReaders(t *testing.T) {
	t.Parallel()
	violations, err := pages.Readers(plant(t, "-- good.md --\n# Good\n\nFor operators: what to do.\n"+
		"-- generated.md --\n<!-- Code generated -->\n\n# Good\n\nFor users of the library\n[conn](conn): what it does.\n"+
		"-- 0001-a-decision.md --\n# 1. A decision\n\nAccepted.\n"+
		"-- bad.md --\n# Bad\n\nThis page is for operators: what to do.\n"))
	require.NoError(t, err)
	require.Equal(t, "bad.md:1: does not begin with who it is for and what it answers: \"For READERS: …\" below the "+
		"title\n", render(violations))
}

func TestPagesBeginWithTheirReaders(t *testing.T) {
	t.Parallel()
	violations, err := pages.Readers(filepath.Join(root, "docs"))
	require.NoError(t, err)
	require.Empty(t, render(violations))
}

func TestTables(t *testing.T) {
	t.Parallel()
	folder := plant(t, "-- cli/a.go --\npackage a\n\nvar x = output.Cells(\"ID\", a, \"LAST BEAT\", b, \"+HASH\", c, "+
		"\"AGE\", d)\n"+
		"-- page.md --\nID NAME AGE\n```\nID   LAST BEAT  AGE\n1\n  ID  LAST BEAT  HASH  AGE\nID  BEAT  AGE\n```\nID  BEAT  AGE\n")
	columns, err := pages.Columns(filepath.Join(folder, "cli"))
	require.NoError(t, err)
	require.Equal(t, [][]string{{"ID", "LAST BEAT", "+HASH", "AGE"}}, columns)
	violations, err := pages.Tables(folder, columns)
	require.NoError(t, err)
	require.Equal(t, "page.md:6: shows a table that no command prints: \"ID  BEAT  AGE\"\n", render(violations))
}

func TestSettings(t *testing.T) {
	t.Parallel()
	folder := plant(t, "-- ref/configuration.md --\n| `listen` | x |\n| `temporal.tls.ca_file` | x |\n"+
		"-- page.md --\n`temporal.tls` and `temporal.tls.ca_file: x`, `temporal.gone`, `temporal.open`, `run.start`\n"+
		"```yaml\nlisten: 1\ntemporal: {}\n```\n```yaml\nlisten: 1\nother: 1\n```\n")
	reference := filepath.Join(folder, "ref/configuration.md")
	violations, err := pages.Settings(folder, reference, "temporal.open")
	require.NoError(t, err)
	require.Equal(t, "page.md:1: names the setting \"temporal.gone\", which the reference does not have\n",
		render(violations))
	violations, err = pages.Configurations(folder, reference, func(source string) []string { return []string{source} })
	require.NoError(t, err)
	require.Equal(t, "page.md:2: shows a configuration with a violation: listen: 1\ntemporal: {}\n\n", render(violations))
}

func TestTablesInPagesAreThoseOfCommands(t *testing.T) {
	t.Parallel()
	columns, err := pages.Columns(filepath.Join(root, "internal/cli"))
	require.NoError(t, err)
	require.Greater(t, len(columns), 15, "they are found")
	violations, err := pages.Tables(root, columns)
	require.NoError(t, err)
	require.Empty(t, render(violations))
}

func TestSettingsInPagesExist(t *testing.T) {
	t.Parallel()
	violations, err := pages.Settings(root, filepath.Join(root, "docs/reference/configuration.md"),
		"worker.evict", "retention.delete", "payloads.open") // actions of the audit log
	require.NoError(t, err)
	require.Empty(t, render(violations))
}

// TestConfigurationsInPagesAreValid loads the configurations in pages. A block with `listen` or `auth` is a whole file;
// others omit the encryption keys that a server requires. Files below /etc/signalbox need not exist.
func TestConfigurationsInPagesAreValid(t *testing.T) {
	t.Parallel()
	seen := 0
	violations, err := pages.Configurations(root, filepath.Join(root, "docs/reference/configuration.md"),
		func(source string) (wrong []string) {
			seen++
			if top := "\n" + source; !strings.Contains(top, "\nlisten:") && !strings.Contains(top, "\nauth:") &&
				!strings.Contains(top, "\nencryption:") {
				source += "encryption: {keys: {first: /etc/signalbox/first.key}}\n"
			}
			file := filepath.Join(t.TempDir(), "signalbox.yaml")
			require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
			_, err := config.Load(config.Options{Env: config.Environment{"SIGNALBOX_CONFIG": file, "LEGACY_PASSWORD": "x"},
				Layers: []config.Layer{clientconfig.TemporalLayer(time.Now), clientconfig.RedisLayer(time.Now),
					config.KeyLayer()}})
			var violations config.Violations
			if !errors.As(err, &violations) {
				return nil
			}
			for _, p := range violations {
				if !strings.Contains(p.Message, "cannot be read: open /etc/signalbox/") {
					wrong = append(wrong, p.String())
				}
			}
			return wrong
		})
	require.NoError(t, err)
	require.Empty(t, render(violations))
	require.GreaterOrEqual(t, seen, 5, "they are found")
}

func TestCells(t *testing.T) {
	t.Parallel()
	folder := plant(t, "-- a.md --\n| state | kind |\n|---|---|\n| `up`, **low** | `a` |\n| up | |\n\n| other |\n| x |\n"+
		"-- a.go --\npackage a\n\nconst (\n\tNone Kind = \"\"\n\tA Kind = \"a\"\n\tB Other = \"b\"\n\tC = \"c\"\n)\n")
	states, err := pages.Cells(filepath.Join(folder, "a.md"), "| state |", 0)
	require.NoError(t, err)
	require.Equal(t, []string{"up", "low"}, states)
	kinds, err := pages.Cells(filepath.Join(folder, "a.md"), "| state |", 1)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, kinds)
	constants, err := pages.Constants(filepath.Join(folder, "a.go"), "Kind")
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, constants)
}

// TestTablesInPagesMatchTheCode compares states, kinds, causes and roles in the pages with those in the code.
func TestTablesInPagesMatchTheCode(t *testing.T) {
	t.Parallel()
	texts := func(file, typeName string) []string {
		constants, err := pages.Constants(filepath.Join(root, file), typeName)
		require.NoError(t, err)
		return constants
	}
	var statuses []string
	for _, s := range run.Statuses() {
		statuses = append(statuses, string(s))
	}
	for _, tt := range []struct {
		page, head string
		column     int
		want       []string
	}{
		{"concepts.md", "| status |", 0, statuses},
		{"stuck.md", "| code |", 0, run.Codes()},
		{"stuck.md", "| cause |", 0, run.Causes()},
		{"runs.md", "| kind |", 0, slices.DeleteFunc(explain.Kinds(), func(kind string) bool {
			return kind == explain.KindUnknown
		})},
		{"batches.md", "| item |", 0, texts("internal/batch/batch.go", "ItemStatus")},
		{"events.md", "| status |", 0, texts("internal/event/event.go", "Status")},
		{"access.md", "| Role |", 0, texts("internal/auth/auth.go", "Role")},
		{"dispatchers.md", "| state |", 0, texts("dispatch/dispatchtype/status.go", "Status")},
		{"dispatchers.md", "| outcome of a takeover |", 0, texts("dispatch/dispatchtype/journal.go", "Outcome")},
		{"connection.md", "| state |", 0, texts("conn/conntype/conntype.go", "State")},
		{"connection.md", "| state |", 1, texts("conn/conntype/conntype.go", "Kind")},

		{"connection.md", "| kind |", 0, texts("internal/run/corrections.go", "CorrectionKind")},
		{"retention.md", "| kind |", 0, texts("internal/retention/retention.go", "Kind")},
	} {
		require.NotEmpty(t, tt.want)
		got, err := pages.Cells(filepath.Join(root, "docs", tt.page), tt.head, tt.column)
		require.NoError(t, err)
		require.ElementsMatch(t, tt.want, got, "%s, %s", tt.page, tt.head)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	violations, err := pages.Names(plant(t, "-- a.md --\n`my_a`, `my_b{label}` and `my_c{x=\"1\"} > 0`, `other`, "+
		"my_d\n```\n`my_e`\n```\n"), regexp.MustCompile("my_[a-z]+"),
		func(name string) bool { return name == "my_a" || name == "my_b" })
	require.NoError(t, err)
	require.Equal(t, "a.md:1: names \"my_c\", which there is not\n", render(violations))
}

// TestNamesInPagesExist searches the code for the metrics of the pages, and the generated reference for their error
// reasons. Names in capitals may also be variables of the compose file.
func TestNamesInPagesExist(t *testing.T) {
	t.Parallel()
	docs := filepath.Join(root, "docs")
	// a role of deploy/postgres, a user of deploy/redis
	made := map[string]bool{"signalbox_owner": true, "signalbox_admin": true}
	literal := regexp.MustCompile(`"((?:signalbox|dispatcher|temporal)[._][a-z_.]+)"`)
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "internal/telemetry"),
		func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, match := range literal.FindAllStringSubmatch(string(text), -1) {
				name := strings.ReplaceAll(match[1], ".", "_") // the name in Prometheus: with the unit, and counters with _total
				made[name], made[name+"_seconds"], made[name+"_bytes"], made[name+"_total"] = true, true, true, true
			}
			return err
		}))
	reference, err := os.ReadFile(filepath.Join(docs, "reference/metrics.md")) // also has metrics of Temporal's SDK
	require.NoError(t, err)
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)`").FindAllStringSubmatch(string(reference), -1) {
		made[row[1]] = true
	}
	metrics, err := pages.Names(docs, regexp.MustCompile(`(signalbox|dispatcher|temporal)_[a-z_]+[a-z]`),
		func(name string) bool {
			return made[name]
		})
	require.NoError(t, err)
	require.Empty(t, render(metrics))

	errors, err := os.ReadFile(filepath.Join(docs, "reference/errors.md"))
	require.NoError(t, err)
	// the last two are statuses of older engines
	known := append(append(run.Codes(), run.Causes()...), run.WarningEventsNotSearched, run.WarningInputFormat,
		run.WarningInputMissing, "IN_PROGRESS", "TIMED_OUT")
	codes, err := pages.Constants(filepath.Join(root, "internal/problem/problem.go"), "Code")
	require.NoError(t, err)
	known = append(known, codes...)
	compose, err := os.ReadFile(filepath.Join(root, "deploy/compose/compose.yaml"))
	require.NoError(t, err)
	for _, variable := range regexp.MustCompile(`\$\{([A-Z0-9_]+):-`).FindAllStringSubmatch(string(compose), -1) {
		known = append(known, variable[1])
	}
	credentials, err := os.ReadFile(filepath.Join(docs, "least-privilege.md")) // has the variables of commands in a table
	require.NoError(t, err)
	for _, variable := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\|").FindAllStringSubmatch(string(credentials),
		-1) {
		known = append(known, variable[1])
	}
	reasons, err := pages.Names(docs, regexp.MustCompile(`[A-Z]+(_[A-Z]+)+`), func(name string) bool {
		return strings.Contains(string(errors), "`"+name+"`") || slices.Contains(known, name) ||
			strings.HasPrefix(name, config.Prefix) ||
			strings.HasPrefix(name, "OTEL_") // variables of OpenTelemetry
	})
	require.NoError(t, err)
	require.Empty(t, render(reasons))
}

// TestLogLinesInPagesAreWritten searches the code of the connection manager for the log lines of the page.
func TestLogLinesInPagesAreWritten(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs/connection.md"))
	require.NoError(t, err)
	_, lines, found := strings.Cut(string(page), "\n## Log lines\n")
	require.True(t, found)
	lines, _, _ = strings.Cut(lines, "\n## ")
	files, err := filepath.Glob(filepath.Join(root, "conn/*.go"))
	require.NoError(t, err)
	deeper, err := filepath.Glob(filepath.Join(root, "conn/internal/*/*.go"))
	require.NoError(t, err)
	code := ""
	for _, file := range append(files, deeper...) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		code += string(text)
	}
	seen := 0
	for row := range strings.Lines(lines) {
		if !strings.HasPrefix(row, "| `") {
			continue
		}
		for _, line := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			seen++
			require.Contains(t, code, `"`+line[1]+`"`)
		}
	}
	require.Greater(t, seen, 15, "they are found")
}

// TestCodesOfStuckRunsAreInEveryList: the command line and the UI have lists of their own, with words for people.
func TestCodesOfStuckRunsAreInEveryList(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"internal/cli/runcmd/runcmd.go", "ui/src/kit/status.ts"} {
		text, err := os.ReadFile("../../../" + file)
		require.NoError(t, err)
		for _, code := range run.Codes() {
			require.Contains(t, string(text), code, "%s lacks %s", file, code)
		}
	}
}

package pages_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/hygiene"
	"github.com/signalbox-dev/signalbox/internal/hygiene/pages"
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

func render(findings []hygiene.Finding) string {
	text := ""
	for _, f := range findings {
		text += f.String() + "\n"
	}
	return text
}

func TestLinks(t *testing.T) {
	t.Parallel()
	findings, err := pages.Links(plant(t, "-- README.md --\n"+
		"# The title: of it\n"+
		"[ok](docs/a.md) [web](https://example.com/x) [heading](docs/a.md#second-part) [here](#the-title-of-it)\n"+
		"[gone](docs/b.md) and `[code](gone.md)`\n"+
		"```\n[fenced](gone.md)\n```\n"+
		"[no heading](docs/a.md#third)\n"+
		"-- docs/a.md --\n# First\n## Second part\n[up](../README.md) [folder](../docs)\n"))
	require.NoError(t, err)
	require.Equal(t, `README.md:3: links to "docs/b.md", which does not exist
README.md:7: links to "docs/a.md#third", but "a.md" has no such heading
`, render(findings))
}

func TestCommands(t *testing.T) {
	t.Parallel()
	folder := plant(t, "-- cli.md --\n"+
		"## signalbox dev\n| `--data-dir folder` | x |\n### signalbox dev temporal\n## signalbox run\n### signalbox run start\n| `--input file` | x |\n| `-o, --output format` | x |\n## signalbox version\n"+
		"-- page.md --\n"+
		"signalbox prose is no command\n"+
		"```sh\n"+
		"signalbox run start hello --input x --output json   # --gone\n"+
		"bin/signalbox version\n"+
		"signalbox dev --data-dir x\n"+
		"signalbox-server run stop\n"+
		"./bin/signalbox walk\n"+
		"signalbox run start --inp x\n"+
		"```\n```yaml\nsignalbox walk\n```\n")
	findings, err := pages.Commands(folder, filepath.Join(folder, "cli.md"))
	require.NoError(t, err)
	require.Equal(t, `page.md:6: runs "signalbox-server run stop", which the reference does not have
page.md:7: runs "./bin/signalbox walk", which the reference does not have
page.md:8: gives --inp to "run start", which the reference does not have
`, render(findings))
}

func TestWorkflows(t *testing.T) {
	t.Parallel()
	folder := plant(t, "-- page.md --\n"+
		"```yaml\nencryption: {keys: {}}\n```\n"+
		"- a list:\n\n  ```yaml\n  # whole\n  document: x\n  do: []\n  ```\n"+
		"```yml\ndo:\n  - part\n```\n"+
		"```json\ndo: no YAML\n```\n")
	var seen []string
	findings, err := pages.Workflows(folder, func(source string) []string {
		seen = append(seen, source)
		return []string{"bad"}
	})
	require.NoError(t, err)
	require.Equal(t, []string{
		"# whole\ndocument: x\ndo: []\n",
		"document: {dsl: '1.0.3', namespace: example, name: example, version: '1.0.0'}\ndo:\n  - part\n",
	}, seen)
	require.Equal(t, "page.md:6: shows a workflow with a problem: bad\npage.md:11: shows a workflow with a problem: bad\n", render(findings))
}

func TestWorkflowsInPagesAreValid(t *testing.T) {
	t.Parallel()
	seen := 0
	findings, err := pages.Workflows(root, func(source string) (wrong []string) {
		seen++
		_, problems := dsl.Parse([]byte(source))
		for _, p := range problems {
			wrong = append(wrong, p.String())
		}
		return wrong
	})
	require.NoError(t, err)
	require.Empty(t, render(findings))
	require.GreaterOrEqual(t, seen, 9, "they are found")
}

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	findings, err := pages.Links(root)
	require.NoError(t, err)
	require.Empty(t, render(findings))
}

func TestCommandsInPagesExist(t *testing.T) {
	t.Parallel()
	findings, err := pages.Commands(root, filepath.Join(root, "docs/reference/cli.md"))
	require.NoError(t, err)
	require.Empty(t, render(findings))
}

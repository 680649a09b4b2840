package examples_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// snippetHead has what the snippets of the page about the libraries refer to.
const snippetHead = `package snippet

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"connectrpc.com/connect"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/dispatch"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/inbox/memory"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/function"
	"github.com/signalbox-dev/signalbox/lease"
	"github.com/signalbox-dev/signalbox/lease/redislease"
)

func Order(workflow.Context) error { return nil }

func snippet(ctx context.Context, m *conn.Manager, source []byte, now time.Time) error {
	{
`

// The Go code of the page about the libraries compiles, except that it need not use all of its variables.
func TestSnippetsOfLibrariesCompile(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/libraries.md")
	require.NoError(t, err)
	snippets := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.GreaterOrEqual(t, len(snippets), 5)
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", exported(t))
	for i, snippet := range snippets {
		name := fmt.Sprintf("block %d", i+1)
		file, err := parser.ParseFile(fset, name, snippetHead+snippet[1]+"\n\t}\n\treturn nil\n}\n", 0)
		require.NoError(t, err)
		var problems []error
		config := types.Config{Importer: imports, Error: func(err error) {
			if problem, ok := errors.AsType[types.Error](err); !ok || !problem.Soft {
				problems = append(problems, err)
			}
		}}
		_, _ = config.Check("snippet", fset, []*ast.File{file}, nil)
		require.Empty(t, problems, snippet[1])
	}
}

// exported returns a function that opens the export data of a package that the head imports, directly or not.
func exported(t *testing.T) importer.Lookup {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, match := range regexp.MustCompile(`\t(?:\w+ )?"([^"]+)"`).FindAllStringSubmatch(snippetHead, -1) {
		args = append(args, match[1])
	}
	list := exec.CommandContext(t.Context(), "go", args...)
	// those of make build, which has compiled the packages
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	out, err := list.Output()
	require.NoError(t, err)
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if path, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			files[path] = file
		}
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
}

package hygiene

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Graph returns the imports of the packages that a pattern names in the module in dir and of all that they link,
// without tests, as go list reports them.
func Graph(ctx context.Context, dir, pattern string) (Imports, error) {
	list := exec.CommandContext(ctx, "go", "list", "-deps", "-json=ImportPath,Imports,Error", pattern) //nolint:gosec // patterns of tests
	list.Dir = dir
	list.Env = append(os.Environ(), "GOWORK=off")
	var output, messages bytes.Buffer
	list.Stdout, list.Stderr = &output, &messages
	if err := list.Run(); err != nil {
		return nil, fmt.Errorf("list the packages of %q: %w: %s", dir, err, strings.TrimSpace(messages.String()))
	}
	graph := Imports{}
	for decoder := json.NewDecoder(&output); ; {
		var pkg struct {
			ImportPath string   `json:"ImportPath"`
			Imports    []string `json:"Imports"`
		}
		err := decoder.Decode(&pkg)
		if errors.Is(err, io.EOF) {
			return graph, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read what go list printed: %w", err)
		}
		graph[pkg.ImportPath] = pkg.Imports
	}
}

//go:build linux && (amd64 || arm64)

package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/sandbox/limit"
	"github.com/signalbox-dev/signalbox/internal/sandbox/owner"
)

// A priority counts within one group only, so that groups have a low weight besides.
func TestGroupsOfCommandsHaveALowWeight(t *testing.T) {
	t.Parallel()
	g, err := openGroups()
	if err != nil {
		t.Skipf("no control groups can be made here: %v", err)
	}
	name := owner.Unique()
	made, err := g.make(name, limit.Limits{Memory: 64 << 20, Processes: 8, Processors: 1})
	require.NoError(t, err)
	defer made.remove()
	file, weight := "cpu.shares", "102"
	if g.unified {
		file, weight = "cpu.weight", "10"
	}
	content, err := os.ReadFile(filepath.Join(g.folders["cpu"], name, file))
	require.NoError(t, err)
	require.Equal(t, weight, strings.TrimSpace(string(content)))
}

// Package packaging_test tests deploy: compose.yaml as Docker Compose reads it, the same topology as processes, in
// containers where `make compose-test` provides them, and the units of systemd.
package packaging_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

func TestMain(m *testing.M) {
	os.Exit(platform.MainParallel(m, 4, func(*platform.Suite) {}))
}

const (
	root   = "../.."
	folder = root + "/deploy/compose"

	// soon is enough for a process to start on a busy machine.
	soon = platform.Patience
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(path))
	require.NoError(t, err)
	return string(text)
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	absolute, err := filepath.Abs(path)
	require.NoError(t, err)
	return absolute
}

// run runs a program to its successful end, and returns its output.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", cmd, out)
	return string(out)
}

// setup runs setup.sh and returns the folder of the secrets.
func setup(t *testing.T) string {
	t.Helper()
	secrets := filepath.Join(t.TempDir(), "secrets")
	run(t, folder+"/setup.sh", secrets)
	return secrets
}

// contents returns the files of a folder by name.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	files := map[string]string{}
	for _, entry := range entries {
		files[entry.Name()] = read(t, filepath.Join(folder, entry.Name()))
	}
	return files
}

// parseSize reads the form of GOMEMLIMIT that compose.yaml uses.
func parseSize(text string) (int64, error) {
	number, found := strings.CutSuffix(text, "MiB")
	if !found {
		return 0, fmt.Errorf("%q is not in MiB", text)
	}
	n, err := strconv.ParseInt(number, 10, 64)
	return n << 20, err
}

// get reads a page, and returns what is wrong.
func get(t *testing.T, url string) (text, wrong string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err.Error()
	}
	defer func() { _ = res.Body.Close() }() // read below
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return "", fmt.Sprintf("%s: %s %v", url, res.Status, err)
	}
	return string(body), ""
}

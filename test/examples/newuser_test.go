package examples_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// A new user has a workflow with tests that pass, changes it, reads in the terminal which expectation and which task at
// which lines the change concerns, and mends it. No server is there.
func TestNewUsersFirstTest(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	signalbox := func(args ...string) platform.Result {
		return platform.Run(t, platform.Command{Binary: platform.Binary(t), Args: args, Dir: folder,
			Env: []string{"HOME=" + folder, "SIGNALBOX_ADDRESS=127.0.0.1:1"}})
	}
	made := signalbox("workflow", "init", "order.yaml")
	require.Zero(t, made.Code, made)
	passed := signalbox("workflow", "test", "order.yaml")
	require.Zero(t, passed.Code, passed)
	require.Contains(t, passed.Stdout, "ok      order.test.yaml:5")
	require.Contains(t, made.Stderr, "signalbox workflow test order.yaml", "it names the next command")

	file := filepath.Join(folder, "order.yaml")
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	const right, wrong = ".statusCode == 200", ".statusCode == 204"
	require.Contains(t, string(content), right)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(content), right, wrong, 1)), 0o600))
	failed := signalbox("workflow", "test", "order.yaml")
	require.Equal(t, 1, failed.Code, failed)
	for _, want := range []string{
		"failed  order.test.yaml:5  reports a service that responds",
		"order.test.yaml:12: output: the output differs",
		"-  \"healthy\": true,", "+  \"healthy\": false,",
		"/do/1/summarize  order.yaml:44",
	} {
		require.Contains(t, failed.Stdout, want)
	}
	require.Contains(t, failed.Stderr, "1 file, 2 cases, 1 failed")

	require.NoError(t, os.WriteFile(file, content, 0o600))
	mended := signalbox("workflow", "test", "order.yaml")
	require.Zero(t, mended.Code, mended)
}

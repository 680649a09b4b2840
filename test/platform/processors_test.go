package platform_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The script that `make steady` runs each suite with limits a command and all that it starts, and leaves nothing
// behind.
func TestProcessorsAreLimited(t *testing.T) {
	t.Parallel()
	run := func(args ...string) (output string, code int) {
		cmd := exec.CommandContext(t.Context(), "../../scripts/processors.sh", args...)
		text, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			require.NoError(t, err)
		}
		return string(text), cmd.ProcessState.ExitCode()
	}
	for _, args := range [][]string{{}, {"0.25"}, {"quarter", "true"}, {"-1", "true"}} {
		output, code := run(args...)
		require.Equal(t, 2, code, "%v: %s", args, output)
		require.Contains(t, output, "usage: processors.sh SHARE COMMAND…")
	}
	const unable = 69
	output, code := run("1", "true")
	if code == unable {
		t.Skip(strings.TrimSpace(output))
	}
	require.Zero(t, code, output)

	output, code = run("1", "sh", "-c", "kill -INT $$; echo survived")
	require.Equal(t, 130, code, "a command can be interrupted: %s", output)

	// The command leaves a process that would run on, and its own exit code.
	output, code = run("0.25", "sh", "-c", "cat /proc/self/cgroup; for f in "+
		"/sys/fs/cgroup/cpu/signalbox-processors-$PPID/cpu.cfs_quota_us /sys/fs/cgroup/signalbox-processors-$PPID/cpu.max; "+
		"do [ ! -e $f ] || cat $f; done; sleep 1000 >/dev/null 2>&1 & exit 7")
	require.Equal(t, 7, code, output)
	require.Contains(t, output, "25000", "the limit in microseconds of 100 ms")
	group := regexp.MustCompile(`/signalbox-processors-\d+`).FindString(output)
	require.NotEmpty(t, group, output)
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/cpu"} {
		_, err := os.Stat(filepath.Join(root, group))
		require.ErrorIs(t, err, os.ErrNotExist, "the group is removed, and the process in it with it")
	}
}

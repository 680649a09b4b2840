package processor_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/processor"
)

func TestGroupsAreThoseOfTheControllerAndTheirParents(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]processor.ControlGroup{
		"0::/pods/one\n":      {{2, "sys/fs/cgroup/pods/one"}, {2, "sys/fs/cgroup/pods"}, {2, "sys/fs/cgroup"}},
		"0::/../../outside\n": {{2, "sys/fs/cgroup/outside"}, {2, "sys/fs/cgroup"}},
		"4:cpu,cpuacct:/a\n0::/n": {
			{1, "sys/fs/cgroup/cpu/a"}, {1, "sys/fs/cgroup/cpu"}, {2, "sys/fs/cgroup/n"}, {2, "sys/fs/cgroup"}},
		"5:memory:/a\n": nil,
		"nonsense\n":    nil,
	} {
		require.Equal(t, want, processor.ControlGroups(fstest.MapFS{"proc/self/cgroup": {Data: []byte(text)}}, "cpu"), text)
	}
	require.Empty(t, processor.ControlGroups(fstest.MapFS{}, "cpu"))
}

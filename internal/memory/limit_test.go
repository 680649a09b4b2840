package memory_test

import (
	"math"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/memory"
)

func TestChooseOrder(t *testing.T) {
	t.Parallel()
	const none = math.MaxInt64
	for name, tt := range map[string]struct {
		environment, configured, cgroup int64
		want                            memory.Limit
	}{
		"GOMEMLIMIT is honoured before all": {1000, 2000, 3000, memory.Limit{Bytes: 1000, Source: memory.FromEnvironment}},
		"memory_limit before the cgroup": {
			none, 2000, 3000, memory.Limit{Bytes: 2000, Source: memory.FromConfiguration}},
		"nine tenths of the cgroup's":         {none, 0, 3000, memory.Limit{Bytes: 2700, Source: memory.FromCgroup}},
		"no limit where nothing says of any":  {none, 0, 0, memory.Limit{}},
		"GOMEMLIMIT=0 is a limit of the user": {0, 2000, 0, memory.Limit{Bytes: 0, Source: memory.FromEnvironment}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, memory.Choose(tt.environment, tt.configured, tt.cgroup))
		})
	}
}

func TestCgroupLimitIsTheSmallestOfAllParents(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no control groups": {nil, 0},
		"version 2": {map[string]string{
			"proc/self/cgroup":                    "0::/pods/one\n",
			"sys/fs/cgroup/memory.max":            "max\n",
			"sys/fs/cgroup/pods/memory.max":       "1000\n",
			"sys/fs/cgroup/pods/one/memory.max":   "2000\n",
			"sys/fs/cgroup/pods/other/memory.max": "5\n",
		}, 1000},
		"version 2 in a container": {map[string]string{
			"proc/self/cgroup": "0::/../../outside\n", "sys/fs/cgroup/memory.max": "4096\n",
		}, 4096},
		"version 2 without a limit": {map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n",
		}, 0},
		"version 1": {map[string]string{
			"proc/self/cgroup": "12:cpu,cpuacct:/a\n5:memory:/docker/1\n",
			"sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "3000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":          "9223372036854771712\n",
			"sys/fs/cgroup/memory.max":                            "7\n",
		}, 3000},
		"a line that cannot be read": {map[string]string{"proc/self/cgroup": "nonsense\n"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := fstest.MapFS{}
			for path, text := range tt.files {
				root[path] = &fstest.MapFile{Data: []byte(text)}
			}
			require.Equal(t, tt.want, memory.CgroupLimit(root))
		})
	}
}

package processor_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/internal/processor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// files returns a file system with these contents.
func files(contents map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	for name, text := range contents {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

func TestGroupIsTheOneWithTheLowestLimit(t *testing.T) {
	t.Parallel()
	stat2 := "usage_usec 9\nnr_periods 100\nnr_throttled 93\nthrottled_usec 2000000\n"
	for name, tt := range map[string]struct {
		contents map[string]string
		want     *processor.Group
	}{
		"no control groups": {nil, nil},
		"version 2": {map[string]string{
			"proc/self/cgroup":     "0::/pods/one\n",
			"sys/fs/cgroup/pods/x": "", "sys/fs/cgroup/pods/cpu.max": "200000 100000\n",
			"sys/fs/cgroup/pods/one/cpu.max": "25000 100000\n", "sys/fs/cgroup/pods/one/cpu.stat": stat2,
		}, &processor.Group{Limit: 0.25, Period: 100 * time.Millisecond, Periods: 100, Throttled: 93,
			ThrottledFor: 2 * time.Second}},
		"version 2, the limit of the parent": {map[string]string{
			"proc/self/cgroup":           "0::/pods/one\n",
			"sys/fs/cgroup/pods/cpu.max": "50000 100000\n", "sys/fs/cgroup/pods/cpu.stat": stat2,
			"sys/fs/cgroup/pods/one/cpu.max": "max 100000\n",
		}, &processor.Group{Limit: 0.5, Period: 100 * time.Millisecond, Periods: 100, Throttled: 93,
			ThrottledFor: 2 * time.Second}},
		"version 2 without a limit": {map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n", "sys/fs/cgroup/cpu.stat": "usage_usec 9\n",
		}, &processor.Group{Period: 100 * time.Millisecond}},
		"version 2 without the controller": {map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.stat": "usage_usec 9\n",
		}, nil},
		"version 1": {map[string]string{
			"proc/self/cgroup":                      "4:cpu,cpuacct:/a\n0::/\n",
			"sys/fs/cgroup/cpu/a/cpu.cfs_quota_us":  "150000\n",
			"sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/cpu/a/cpu.stat":          "nr_periods 10\nnr_throttled 4\nthrottled_time 3000000000\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":    "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
		}, &processor.Group{Limit: 1.5, Period: 100 * time.Millisecond, Periods: 10, Throttled: 4,
			ThrottledFor: 3 * time.Second}},
		"files with other contents": {map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "much 100000\n", "sys/fs/cgroup/cpu.stat": "nr_periods x\n",
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, processor.Read(files(tt.contents), time.Time{}).Group)
		})
	}
}

func TestTimesOfProcessAndThreads(t *testing.T) {
	t.Parallel()
	s := processor.Read(files(map[string]string{
		"proc/self/stat":             "7 (a) b) S 1 7 7 0 -1 4194304 9 9 9 9 120 30 0 0 20 0 9 0 1\n",
		"proc/self/task/7/schedstat": "1000 2000000000 3\n", "proc/self/task/8/schedstat": "1000 5 3\n",
		"proc/self/task/9/comm":       "x\n",
		"proc/self/task/10/schedstat": "unreadable\n",
	}), time.Time{})
	require.Equal(t, 1500*time.Millisecond, *s.Used)
	require.Equal(t, map[int]time.Duration{7: 2 * time.Second, 8: 5}, s.Waits)
	s = processor.Read(files(map[string]string{"proc/self/stat": "7 (a) S 1\n"}), time.Time{})
	require.Nil(t, s.Used, "unknown, not 0")
	require.Nil(t, s.Waits)
}

func TestShortage(t *testing.T) {
	t.Parallel()
	at, began := time.Unix(100, 0), time.Unix(40, 0)
	used := func(d time.Duration) *time.Duration { return &d }
	group := func(limit float64, periods, throttled int64) *processor.Group {
		return &processor.Group{Limit: limit, Period: 100 * time.Millisecond, Periods: periods, Throttled: throttled}
	}
	for name, tt := range map[string]struct {
		used, waited *time.Duration
		group        *processor.Group
		short        bool
		gets         string
	}{
		"throttled all the time": {
			used(14400 * time.Millisecond), nil, group(0.25, 600, 558), true,
			"gets 24 % of a processor (limited to 25 % of a processor and throttled in 93 % of the last minute's periods)",
		},
		"throttled while it worked": {
			used(2500 * time.Millisecond), nil, group(0.25, 100, 90), true,
			"gets 25 % of a processor (limited to 25 % of a processor and throttled in 90 % of the last minute's periods)",
		},
		"limited and not throttled": {used(6 * time.Second), nil, group(0.25, 600, 12), false, ""},
		"idle":                      {used(0), used(0), group(0.25, 0, 0), false, ""},
		"a busy machine": {
			used(30 * time.Second), used(90 * time.Second), group(0, 0, 0), true,
			"gets 50 % of a processor (1.5 threads wait for one on average, because the machine is busy)",
		},
		"busy with its own work": {used(110 * time.Second), used(50 * time.Second), nil, false, ""},
		"unknown":                {nil, nil, nil, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := processor.Sample{At: began, Used: used(0)}
			if tt.group != nil {
				from.Group = group(tt.group.Limit, 0, 0)
			}
			s := processor.Between(from, processor.Sample{At: at, Used: tt.used, Group: tt.group}, tt.waited)
			require.Equal(t, tt.short, s.Short())
			if tt.short {
				require.Equal(t, tt.gets, s.Gets())
			}
			require.Equal(t, tt.group == nil, s.Throttled == nil, "unknown, not 0")
			require.Equal(t, tt.group == nil, s.Limit == nil)
			require.Equal(t, tt.waited == nil, s.Waiting == nil)
		})
	}
	none, waited := time.Duration(0), time.Second
	s := processor.Between(processor.Sample{At: at, Used: &none},
		processor.Sample{At: at.Add(20 * time.Millisecond), Used: &none}, &waited)
	require.Equal(t, processor.State{}, s, "a moment shows nothing")
	require.Equal(t, "1.5 processors", processor.Amount(1.5))
}

// machine is the files of a process whose counters grow.
type machine struct {
	mu       sync.Mutex
	contents map[string]string
}

func (m *machine) set(contents map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.contents = maps.Clone(contents)
}

func (m *machine) Open(name string) (fs.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return files(m.contents).Open(name)
}

// lines is a log that is read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestMonitorReportsTheLastMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log lines
		m := &machine{}
		count := func(periods, throttled, waited int) {
			m.set(map[string]string{
				"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "20000 100000\n",
				"sys/fs/cgroup/cpu.stat":     fmt.Sprintf("nr_periods %d\nnr_throttled %d\nthrottled_usec 7\n", periods, throttled),
				"proc/self/stat":             fmt.Sprintf("7 (a) S 1 7 7 0 -1 4194304 9 9 9 9 %d 0 0 0 20 0 9 0 1\n", periods*5/2),
				"proc/self/task/7/schedstat": fmt.Sprintf("1 %d 1\n", waited),
			})
		}
		count(1000, 1000, int(time.Hour))
		monitor := processor.NewMonitor(processor.Options{Root: m, Log: slog.New(slog.NewTextHandler(&log, nil))})
		require.Equal(t, processor.State{}, monitor.State())
		require.Equal(t, processor.Totals{}, monitor.Totals())
		require.NoError(t, monitor.Start(t.Context()))
		require.True(t, monitor.State().BelowMinimum())
		require.Contains(t, log.String(), "less processor time than it requires")
		require.False(t, monitor.State().Short(), "what was before the start does not count")
		synctest.Wait()
		require.NotContains(t, log.String(), "is short")
		count(1050, 1050, int(time.Hour+9*time.Second))
		<-time.After(6 * time.Second)
		synctest.Wait()
		require.True(t, monitor.State().Short())
		require.Equal(t, 9*time.Second, *monitor.Totals().Waited)
		require.Equal(t, int64(1050), monitor.Totals().Group.Throttled)
		require.Contains(t, log.String(), "it gets 25 % of a processor")
		<-time.After(65 * time.Second)
		synctest.Wait()
		require.False(t, monitor.State().Short(), "a minute later it is over")
		require.Contains(t, log.String(), "that it needs again")
		require.NoError(t, monitor.Stop(t.Context()))
	})
}

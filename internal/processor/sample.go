package processor

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"
)

// Sample is what the operating system has counted for this process until a moment.
type Sample struct {
	At time.Time
	// Group is the control group with the lowest limit; nil where no group's limit can be read.
	Group *Group
	// Used is the processor time of the process; nil where it cannot be read.
	Used *time.Duration
	// Waits are how long each thread was ready and waited for a processor, by the thread's number; nil where it cannot be
	// read.
	Waits map[int]time.Duration
}

// Group is a control group's limit of processor time. Without a limit, the kernel counts no periods.
type Group struct {
	// Limit is a number of processors; 0 is no limit.
	Limit float64
	// Period is how often the kernel grants Limit × Period of processor time.
	Period time.Duration
	// Periods counts those in which the group ran, Throttled those of them in which it had used up its time, and
	// ThrottledFor the time that its processors stood still then.
	Periods, Throttled int64
	ThrottledFor       time.Duration
}

// Read reads the counters of this process. root is the file system with /proc and /sys.
func Read(root fs.FS, now time.Time) Sample {
	s := Sample{At: now}
	for _, c := range ControlGroups(root, "cpu") {
		g, known := readGroup(root, c)
		if known && (s.Group == nil || g.Limit > 0 && (s.Group.Limit == 0 || g.Limit < s.Group.Limit)) {
			s.Group = &g
		}
	}
	if text, err := fs.ReadFile(root, "proc/self/stat"); err == nil {
		if used, ok := parseUsed(string(text)); ok {
			s.Used = &used
		}
	}
	threads, _ := fs.ReadDir(root, "proc/self/task")
	for _, t := range threads {
		text, err := fs.ReadFile(root, path.Join("proc/self/task", t.Name(), "schedstat"))
		if err != nil {
			continue // the thread has ended
		}
		number, err := strconv.Atoi(t.Name())
		waited, ok := parseWait(string(text))
		if err != nil || !ok {
			continue
		}
		if s.Waits == nil {
			s.Waits = map[int]time.Duration{}
		}
		s.Waits[number] = waited
	}
	return s
}

// readGroup returns false for a group whose limit cannot be read, as one without the controller. Its counters may be
// missing: then they are 0.
func readGroup(root fs.FS, c ControlGroup) (g Group, known bool) {
	read := func(file string) string {
		text, err := fs.ReadFile(root, path.Join(c.Folder, file))
		if err != nil {
			return ""
		}
		return string(text)
	}
	limit := read("cpu.max")
	if c.Version == 1 {
		limit = read("cpu.cfs_quota_us") + " " + read("cpu.cfs_period_us")
	}
	g.Limit, g.Period, known = parseLimit(limit)
	g.Periods, g.Throttled, g.ThrottledFor = parseStat(read("cpu.stat"))
	return g, known
}

// parseLimit parses a quota and a period in microseconds, as of cpu.max. "max" and -1 are no limit.
func parseLimit(text string) (limit float64, period time.Duration, ok bool) {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return 0, 0, false
	}
	micros, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil || micros <= 0 {
		return 0, 0, false
	}
	period = time.Duration(micros) * time.Microsecond
	if fields[0] == "max" || fields[0] == "-1" {
		return 0, period, true
	}
	quota, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil || quota <= 0 {
		return 0, 0, false
	}
	return float64(quota) / float64(micros), period, true
}

// parseStat parses cpu.stat. Version 1 has nanoseconds in throttled_time, version 2 microseconds in throttled_usec.
func parseStat(text string) (periods, throttled int64, throttledFor time.Duration) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			continue
		}
		switch name {
		case "nr_periods":
			periods = n
		case "nr_throttled":
			throttled = n
		case "throttled_time":
			throttledFor = time.Duration(n)
		case "throttled_usec":
			throttledFor = time.Duration(n) * time.Microsecond
		}
	}
	return periods, throttled, throttledFor
}

// parseUsed parses /proc/self/stat: after the program's name in parentheses, the fields 12 and 13 are user and system
// time in ticks.
func parseUsed(text string) (used time.Duration, ok bool) {
	const tick = 10 * time.Millisecond // USER_HZ is 100 on all architectures that Go supports
	fields := strings.Fields(text[strings.LastIndex(text, ")")+1:])
	const user, system = 11, 12
	if len(fields) <= system {
		return 0, false
	}
	u, err1 := strconv.ParseInt(fields[user], 10, 64)
	s, err2 := strconv.ParseInt(fields[system], 10, 64)
	return time.Duration(u+s) * tick, err1 == nil && err2 == nil
}

// parseWait parses a thread's schedstat: the times that it ran and that it waited for a processor, in nanoseconds, and
// how often it ran.
func parseWait(text string) (waited time.Duration, ok bool) {
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return 0, false
	}
	n, err := strconv.ParseInt(fields[1], 10, 64)
	return time.Duration(n), err == nil
}

package memory

import (
	"io/fs"
	"math"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/signalbox-dev/signalbox/internal/processor"
)

// The sources of a limit.
const (
	// FromEnvironment is the variable GOMEMLIMIT, which the Go runtime applies before main.
	FromEnvironment = "GOMEMLIMIT"
	// FromConfiguration is the key memory_limit.
	FromConfiguration = "memory_limit"
	// FromCgroup is the memory limit of the process's control group.
	FromCgroup = "cgroup"
)

// Limit is the soft memory limit of a process.
type Limit struct {
	// Bytes is the limit; 0 means no limit.
	Bytes int64
	// Source is the origin of the limit; empty without a limit.
	Source string
}

// cgroupShare is the share of a control group's limit that the Go runtime may use. The rest is for memory that the
// runtime does not count: the program's own pages and kernel buffers.
const cgroupShare = 0.9

// Choose selects the limit from GOMEMLIMIT (math.MaxInt64 if unset), the configured limit and the limit of the control
// group (0 if there is none), in this order.
func Choose(environment, configured, cgroup int64) Limit {
	switch {
	case environment != math.MaxInt64:
		return Limit{Bytes: environment, Source: FromEnvironment}
	case configured > 0:
		return Limit{Bytes: configured, Source: FromConfiguration}
	case cgroup > 0:
		return Limit{Bytes: int64(float64(cgroup) * cgroupShare), Source: FromCgroup}
	default:
		return Limit{}
	}
}

// Apply chooses the limit and sets it in the Go runtime. The runtime has one limit per process, so only a main program
// calls it. root is the file system with /proc and /sys.
func Apply(configured int64, root fs.FS) Limit {
	limit := Choose(debug.SetMemoryLimit(-1), configured, CgroupLimit(root))
	if limit.Source != "" && limit.Source != FromEnvironment {
		debug.SetMemoryLimit(limit.Bytes)
	}
	return limit
}

// CgroupLimit returns the smallest memory limit of the control groups of this process, 0 if there is none or it cannot
// be read. It supports versions 1 and 2 of control groups.
func CgroupLimit(root fs.FS) int64 {
	least := int64(0)
	for _, g := range processor.ControlGroups(root, "memory") {
		file := "memory.max"
		if g.Version == 1 {
			file = "memory.limit_in_bytes"
		}
		if n := readLimit(root, path.Join(g.Folder, file)); n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// unlimited exceeds every limit of a real machine: version 1 writes "no limit" as a number close to the largest one.
const unlimited = 1 << 60

func readLimit(root fs.FS, name string) int64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n >= unlimited { // "max" is not a number
		return 0
	}
	return n
}

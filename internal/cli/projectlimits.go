package cli

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/config/schema"
)

// runnerLimits removes a project's own limits of programs.
const runnerLimits = "none"

// parseProgramLimits reads the value of --program-limits: NAME=VALUE, or none.
func parseProgramLimits(given []string) (*signalboxv1.ProgramLimits, error) {
	limits := &signalboxv1.ProgramLimits{}
	if slices.Equal(given, []string{runnerLimits}) {
		return limits, nil
	}
	var named []string
	for _, part := range given {
		name, value, _ := strings.Cut(part, "=")
		if slices.Contains(named, name) {
			return nil, exit.Usagef("--program-limits: %s is given twice", name)
		}
		named = append(named, name)
		if err := parseProgramLimit(limits, name, value); err != nil {
			return nil, err
		}
	}
	return limits, nil
}

// parseProgramLimit reads one limit.
func parseProgramLimit(limits *signalboxv1.ProgramLimits, name, value string) error {
	var err error
	size := func() int64 {
		var n schema.Size
		if n, err = schema.ParseSize(value); err == nil && n == 0 {
			err = exit.Usagef("0 is no limit")
		}
		return int64(n)
	}
	switch name {
	case "memory":
		limits.MemoryBytes = size()
	case "disk":
		limits.DiskBytes = size()
	case "output":
		limits.OutputBytes = size()
	case "processes":
		var n int64
		if n, err = strconv.ParseInt(value, 10, 32); err != nil || n < 1 {
			err = exit.Usagef("%q is not a number from 1 on", value)
		}
		limits.Processes = int32(n)
	case "processors":
		if limits.Processors, err = strconv.ParseFloat(value, 64); err != nil || !(limits.Processors > 0) {
			err = exit.Usagef("%q is not a number above 0, for example 0.5", value)
		}
	case "time":
		var d time.Duration
		if d, err = time.ParseDuration(value); err != nil || d <= 0 {
			err = exit.Usagef("%q is not a duration, for example 90s", value)
		}
		limits.Time = durationpb.New(d)
	case "network":
		if limits.Network = value; value == "" {
			err = exit.Usagef("it is empty; write none, guarded or host")
		}
	default:
		return exit.Usagef("--program-limits %q: use NAME=VALUE with one of memory, processes, processors, disk, output, time "+
			"and network, or %q alone", name, runnerLimits)
	}
	if err != nil {
		return exit.Usagef("--program-limits: %s: %v", name, err)
	}
	return nil
}

// programLimits returns the limits of the programs of a project, as a text that --program-limits reads.
func programLimits(l *signalboxv1.ProgramLimits) string {
	var parts []string
	add := func(name, value string, set bool) {
		if set {
			parts = append(parts, name+"="+value)
		}
	}
	size := func(name string, n int64) { add(name, schema.Size(n).String(), n > 0) }
	size("memory", l.GetMemoryBytes())
	add("processes", strconv.Itoa(int(l.GetProcesses())), l.GetProcesses() > 0)
	add("processors", strconv.FormatFloat(l.GetProcessors(), 'g', -1, 64), l.GetProcessors() > 0)
	size("disk", l.GetDiskBytes())
	size("output", l.GetOutputBytes())
	add("time", l.GetTime().AsDuration().String(), l.GetTime() != nil)
	add("network", l.GetNetwork(), l.GetNetwork() != "")
	if len(parts) == 0 {
		return "those of the runner"
	}
	return strings.Join(parts, ",")
}

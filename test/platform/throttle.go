package platform

import (
	"os"
	"strconv"
	"strings"
)

// processorsVariable has the number of processors that each server gets, such as 0.25, in a control group of its own,
// as a container has it. Without it servers have no limit. What stands for other machines has none either: Temporal,
// the database, the services that are called, and the test.
const processorsVariable = "SIGNALBOX_PROCESSORS"

// Throttled reports whether servers get less than a whole processor.
func Throttled() bool { return os.Getenv(processorsVariable) != "" }

// cannotThrottle returns why servers cannot get the number of processors that the variable has; empty where they can,
// or it is not set.
func cannotThrottle() string {
	if !Throttled() {
		return ""
	}
	if processors, err := strconv.ParseFloat(os.Getenv(processorsVariable), 64); err != nil || processors < 0.01 {
		return "it is no number of processors from 0.01 on"
	}
	return noProcessorGroup()
}

// throttled returns a program that starts a server's binary with the number of processors that the variable has.
func throttled(t T, binary string) string {
	t.Helper()
	if !Throttled() {
		return binary
	}
	processors, _ := strconv.ParseFloat(os.Getenv(processorsVariable), 64)
	program, _, reason := InProcessorGroup(t, binary, processors)
	if reason != "" {
		t.Fatalf("%s: %s", processorsVariable, reason)
	}
	return program
}

// requireNoDeadlock fails t if a throttled server took a run for one that computes without end: it was only slow.
func requireNoDeadlock(t T, server *Process) {
	if !Throttled() {
		return
	}
	t.Cleanup(func() {
		for _, taken := range []string{"TMPRL1101", "computes for longer than a workflow may"} {
			if strings.Contains(server.Output(), taken) {
				t.Errorf("a server that gets %s of a processor fails a workflow task: %s", os.Getenv(processorsVariable), taken)
			}
		}
	})
}

package platform

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// InMemoryGroup returns a program that runs a binary in a control group of its own, in which the kernel ends the
// process when it takes more than so many bytes. Where no group can be made, it returns the reason.
func InMemoryGroup(t T, binary string, bytes int64) (program, reason string) {
	t.Helper()
	g, err := newGroup("memory")
	if err != nil {
		return "", err.Error()
	}
	t.Cleanup(g.remove)
	limit, swap, text := "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", strconv.FormatInt(bytes, 10)
	if g.version == 2 {
		limit, swap = "memory.max", "memory.swap.max"
	}
	if err := g.write(limit, text); err != nil {
		return "", err.Error()
	}
	if g.version == 2 {
		text = "0"
	}
	_ = g.write(swap, text) // not every kernel counts swap
	return g.program(t, binary)
}

// InProcessorGroup returns a program that runs a binary in a control group of its own, which gets so many processors,
// and a function that changes how many. Where no group can be made, it returns the reason.
func InProcessorGroup(t T, binary string,
	processors float64) (program string, change func(processors float64), reason string) {
	t.Helper()
	g, err := newGroup("cpu")
	if err != nil {
		return "", nil, err.Error()
	}
	t.Cleanup(g.remove)
	if err := g.limit(processors); err != nil {
		return "", nil, err.Error()
	}
	program, reason = g.program(t, binary)
	return program, func(processors float64) {
		if err := g.limit(processors); err != nil {
			t.Fatalf("change the limit of a control group: %v", err)
		}
	}, reason
}

// noProcessorGroup returns why no group of processors can be made here; empty where one can.
func noProcessorGroup() string {
	g, err := newGroup("cpu")
	if err != nil {
		return err.Error()
	}
	defer g.remove()
	if err := g.limit(1); err != nil {
		return err.Error()
	}
	return ""
}

// group is a control group.
type group struct {
	folder  string
	version int
}

func newGroup(controller string) (g group, err error) {
	const root = "/sys/fs/cgroup"
	parent := filepath.Join(root, controller)
	g.version = 1
	if _, err := os.Stat(parent); err != nil {
		parent, g.version = root, 2
		// or it is enabled, or the limit cannot be set
		_ = os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+"+controller), 0o600)
	}
	g.folder, err = os.MkdirTemp(parent, "signalbox-test-")
	return g, err
}

// remove removes the group, unless it still has a process that is ending.
func (g group) remove() { _ = os.Remove(g.folder) }

func (g group) write(file, text string) error {
	return os.WriteFile(filepath.Join(g.folder, file), []byte(text), 0o600)
}

// limit sets the number of processors. A group that gets less than its limit because others use the processors is never
// throttled, so one with less than a processor has precedence over what else runs on the machine.
func (g group) limit(processors float64) error {
	const period = 100_000 // µs
	shares, weight := "1024", "100"
	if processors < 1 {
		shares, weight = "262144", "10000" // the most
	}
	quota := int(processors * period)
	if g.version == 1 {
		return errors.Join(g.write("cpu.shares", shares), g.write("cpu.cfs_quota_us", strconv.Itoa(quota)))
	}
	return errors.Join(g.write("cpu.weight", weight), g.write("cpu.max", fmt.Sprintf("%d %d", quota, period)))
}

// program returns one that runs a binary in the group, or why it cannot be written.
func (g group) program(t T, binary string) (program, reason string) {
	program = filepath.Join(t.TempDir(), filepath.Base(binary))
	script := fmt.Sprintf("#!/bin/sh\necho $$ > '%s' && exec '%s' \"$@\"\n", filepath.Join(g.folder, "cgroup.procs"),
		binary)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		return "", err.Error()
	}
	return program, ""
}

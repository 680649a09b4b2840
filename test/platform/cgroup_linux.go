package platform

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// InMemoryGroup returns a program that runs a binary in a control group of its own, in which the kernel ends the process when it takes more
// than so many bytes. Where no group can be made, it returns the reason.
func InMemoryGroup(t T, binary string, bytes int64) (program, reason string) {
	t.Helper()
	const root = "/sys/fs/cgroup"
	parent, limit, swap := filepath.Join(root, "memory"), "memory.limit_in_bytes", "memory.memsw.limit_in_bytes" // version 1
	if _, err := os.Stat(parent); err != nil {
		parent, limit, swap = root, "memory.max", "memory.swap.max"
	}
	group, err := os.MkdirTemp(parent, "signalbox-test-")
	if err != nil {
		return "", err.Error()
	}
	t.Cleanup(func() { _ = os.Remove(group) }) // it may still have a process that is ending
	text := strconv.FormatInt(bytes, 10)
	if err := os.WriteFile(filepath.Join(group, limit), []byte(text), 0o600); err != nil {
		return "", err.Error()
	}
	if swap == "memory.swap.max" {
		text = "0"
	}
	_ = os.WriteFile(filepath.Join(group, swap), []byte(text), 0o600) // not every kernel counts swap
	program = filepath.Join(t.TempDir(), filepath.Base(binary))
	script := fmt.Sprintf("#!/bin/sh\necho $$ > '%s' && exec '%s' \"$@\"\n", filepath.Join(group, "cgroup.procs"), binary)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		return "", err.Error()
	}
	return program, ""
}

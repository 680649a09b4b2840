// Package owner names this process, so that a later process can decide whether what carries the name is still in use.
//
//	name := owner.Name()
//	// when another process starts
//	if owner.Gone(name) { remove what carries it }
package owner

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// Name returns the name of this process: its id and the time at which it started, since ids are used again.
func Name() string { return nameOf(strconv.Itoa(os.Getpid())) }

// Gone reports whether the process with a name has ended. A name of a process in another process namespace cannot be
// judged.
func Gone(name string) bool {
	pid, _, _ := strings.Cut(name, "-")
	return nameOf(pid) != name
}

// nameOf returns the name of a process; without a time for one that has ended.
func nameOf(pid string) string {
	const startTime = 19 // among the fields after the name of the program, which may have spaces
	stat, _ := os.ReadFile("/proc/" + pid + "/stat")
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= startTime {
		return pid + "-"
	}
	return pid + "-" + fields[startTime]
}

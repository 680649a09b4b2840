// Package owner names this process, so that a later process can decide whether what carries the name is still in use.
//
//	name := owner.Name()
//	// when another process starts
//	if owner.Gone(name) { remove what carries it }
//
// What belongs to one program has a unique name with that of this process in it, see [Unique] and [Left].
package owner

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
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

// prefix begins the unique names. The name of the process that made them follows, and what makes it unique.
const prefix = "signalbox-program-"

// Unique returns a name for what belongs to one program of this process.
func Unique() string { return prefix + Name() + "-" + rand.Text() }

// IsLeft reports whether the process that made a unique name has ended. Other names are not left.
func IsLeft(name string) bool {
	name, is := strings.CutPrefix(name, prefix)
	last := strings.LastIndexByte(name, '-')
	return is && last > 0 && Gone(name[:last])
}

// Left returns the paths in a folder whose names are left.
func Left(folder string) []string {
	found, _ := filepath.Glob(filepath.Join(folder, prefix+"*")) // the pattern is valid
	return slices.DeleteFunc(found, func(path string) bool { return !IsLeft(filepath.Base(path)) })
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

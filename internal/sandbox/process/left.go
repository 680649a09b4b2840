//go:build linux && (amd64 || arm64)

package process

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/signalbox-dev/signalbox/internal/sandbox/owner"
)

const (
	// leftPrefix begins the names of commands, of their control groups and of their folders. The name of the process that
	// made them follows, and what makes it unique.
	leftPrefix = "signalbox-program-"
	// marker is a variable of bubblewrap, and of commands without isolation: the name of the command.
	marker = "SIGNALBOX_PROGRAM"
)

// newName returns a name for a command of this process.
func newName() string {
	return leftPrefix + owner.Name() + "-" + rand.Text()
}

// isLeft reports whether the process that made a name has ended.
func isLeft(name string) bool {
	name, is := strings.CutPrefix(name, leftPrefix)
	last := strings.LastIndexByte(name, '-')
	return is && last > 0 && owner.Gone(name[:last])
}

// left returns the paths in a folder that processes have left.
func left(folder string) []string {
	found, _ := filepath.Glob(filepath.Join(folder, leftPrefix+"*")) // the pattern is valid
	return slices.DeleteFunc(found, func(path string) bool { return !isLeft(filepath.Base(path)) })
}

// removeLeft kills the commands whose process has ended, and removes their folders.
func removeLeft() {
	killMarked(isLeft)
	for _, folder := range left(os.TempDir()) {
		_ = os.RemoveAll(folder) // it belongs to another user, or the next process tries again
	}
}

// killMarked kills the processes with a name in their environment. Those in bubblewrap end with the first of them.
func killMarked(matches func(name string) bool) {
	processes, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is valid
	for _, path := range processes {
		environment, _ := os.ReadFile(path) // it has ended, or belongs to another user
		for variable := range bytes.SplitSeq(environment, []byte{0}) {
			name, marked := strings.CutPrefix(string(variable), marker+"=")
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && marked && matches(name) {
				_ = unix.Kill(pid, unix.SIGKILL) // it may have ended
			}
		}
	}
}

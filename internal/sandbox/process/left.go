//go:build linux && (amd64 || arm64)

package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/signalbox-dev/signalbox/internal/sandbox/owner"
)

// marker is a variable of bubblewrap, and of commands without isolation: the name of the command.
const marker = "SIGNALBOX_PROGRAM"

// removeLeft kills the commands whose process has ended, and removes their folders.
func removeLeft() {
	killMarked(owner.IsLeft)
	for _, folder := range owner.Left(os.TempDir()) {
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

package dev

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// lockFolder creates the data folder if it is missing, and locks it for this process until the returned function is
// called. The kernel releases the lock when the process ends, in any way. The text in the file only names the holder.
func lockFolder(folder, listen string) (func() error, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("making the data folder %q: %w; choose one that can be written with --data-dir", folder, err)
	}
	file := filepath.Join(folder, "signalbox.lock")
	lock := flock.New(file, flock.SetPermissions(0o600))
	taken, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("locking the data folder %q: %w; choose one that can be written with --data-dir", folder, err)
	}
	if !taken {
		holder := "another process"
		if text, err := os.ReadFile(file); err == nil && len(text) > 0 {
			holder = strings.TrimSpace(string(text))
		}
		return nil, fmt.Errorf("the data folder %q is in use by %s; stop that one, or choose another folder with --data-dir",
			folder, holder)
	}
	text := fmt.Sprintf("signalbox dev (process %d, listening on %s, since %s)\n", os.Getpid(), listen,
		time.Now().Format(time.RFC3339))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		_ = lock.Unlock() // the write's error is more useful
		return nil, fmt.Errorf("writing to the data folder %q: %w; make room or choose another with --data-dir", folder, err)
	}
	return lock.Unlock, nil
}

package database

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// mountDisk mounts a file system of the given size in MB, in memory, on an existing folder, or skips the test.
func mountDisk(t platform.T, skip func(args ...any), folder string, size int) {
	t.Helper()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=0755", size)); err != nil {
		skip("only root can mount a file system: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, 0); err != nil {
			t.Errorf("unmount %s: %v", folder, err)
		}
	})
}

// FillDisk occupies all space that is left to a server of [StartPostgresOnDisk], and returns the function that frees
// it.
func (p *Postgres) FillDisk(t platform.T) (free func()) {
	t.Helper()
	path := filepath.Join(p.data, "filler")
	file, err := os.Create(filepath.Clean(path))
	if err != nil {
		t.Fatalf("fill the disk of Postgres: %v", err)
	}
	defer func() { _ = file.Close() }() // the space is what matters
	for block := make([]byte, 1<<20); len(block) > 0; {
		if _, err := file.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Errorf("free the disk of Postgres: %v", err)
		}
	}
}

// Package secretfile reads files that hold a secret, and refuses those that other users of the machine may read or
// change.
//
//	content, err := secretfile.Read("/etc/signalbox/2026-11.key")
//
// The owner and the group of a file may read it, so that a service can use a file of root. A file on a mount that is
// read-only may be readable by everyone: container runtimes provide secrets so, and decide by other means which
// processes see them. What is not a regular file, such as a pipe, has no content that others could read later.
package secretfile

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Read returns the content of the file.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only
	if err := Check(f, path); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

// Check returns an error if other users of the machine may read or change the open file. The error has the name, and
// says how to mend it.
func Check(f *os.File, name string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	readOnly := false
	var mount syscall.Statfs_t
	if syscall.Fstatfs(int(f.Fd()), &mount) == nil {
		const flag = 1 // ST_RDONLY of Linux, MNT_RDONLY of macOS
		readOnly = mount.Flags&flag != 0
	}
	found := exposure(info.Mode(), readOnly)
	if found == "" {
		return nil
	}
	return fmt.Errorf("%q holds a secret and %s (mode %04o): run `%s`", name, found, info.Mode().Perm(), mend(name, info))
}

// Modes of which none may be set.
const (
	othersRead = 0o004
	change     = 0o022
)

// exposure returns what others may do with a file, or an empty text.
func exposure(mode fs.FileMode, readOnlyMount bool) string {
	switch {
	case !mode.IsRegular() || readOnlyMount:
		return ""
	case mode.Perm()&change != 0:
		return "can be changed by other users"
	case mode.Perm()&othersRead != 0:
		return "can be read by all users of the machine"
	default:
		return ""
	}
}

// mend returns the command that takes access from other users and leaves it to this process.
func mend(path string, info fs.FileInfo) string {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) == os.Geteuid() {
		return fmt.Sprintf("chmod 600 %q", path)
	}
	return fmt.Sprintf("chgrp %d %q && chmod 640 %q", os.Getegid(), path, path)
}

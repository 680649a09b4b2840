package invocation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// File is a file that a command writes. A regular file has its old content until [File.Commit], and its new content
// after it; its mode, its owner as far as permitted, and links to it stay. Everything else, such as a FIFO, a device or
// a terminal, is written directly.
type File struct {
	*os.File // where the content is written

	target  string // the regular file that gets the content; empty for what is written directly
	replace bool   // by renaming the written file, instead of copying its content
}

// maxLinks is the number of symbolic links that are followed, as by Linux.
const maxLinks = 40

// CreateFile prepares the file at a path. mode is the mode of a new file, before the process's umask.
func CreateFile(path string, mode fs.FileMode) (*File, error) {
	target, err := followLinks(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		part, err := createPart(filepath.Dir(target), filepath.Base(target), mode)
		return &File{File: part, target: target, replace: true}, err
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.EISDIR}
	case !info.Mode().IsRegular():
		direct, err := os.OpenFile(target, os.O_WRONLY, 0)
		return &File{File: direct}, err
	}
	probe, err := os.OpenFile(target, os.O_WRONLY, 0) // a rename would replace a file that may not be written
	if err != nil {
		return nil, err
	}
	if err := probe.Close(); err != nil {
		return nil, err
	}
	if replaceable(info) {
		part, err := createPart(filepath.Dir(target), filepath.Base(target), 0o600)
		if err == nil {
			if sameAccess(part, info) {
				return &File{File: part, target: target, replace: true}, nil
			}
			_ = errors.Join(part.Close(), os.Remove(part.Name())) // the content is copied instead
		}
	}
	part, err := os.CreateTemp("", "signalbox-*")
	return &File{File: part, target: target}, err
}

// followLinks returns the path behind symbolic links; the last one may not exist.
func followLinks(path string) (string, error) {
	for range maxLinks {
		next, err := os.Readlink(path)
		if err != nil {
			return path, nil //nolint:nilerr // no link; what is wrong with the path is reported when it is opened
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(filepath.Dir(path), next)
		}
		path = next
	}
	return "", &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
}

// createPart creates a new file beside the one that it replaces. Other than [os.CreateTemp], it gives the file the
// mode.
func createPart(folder, name string, mode fs.FileMode) (*os.File, error) {
	for n := time.Now().UnixNano(); ; n++ {
		part, err := os.OpenFile(filepath.Join(folder, "."+name+"."+strconv.FormatInt(n, 36)),
			os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if !errors.Is(err, fs.ErrExist) {
			return part, err
		}
	}
}

// replaceable reports whether a file has no other name, which a rename would separate from it.
func replaceable(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 1
}

// sameAccess gives a new file the mode and the owner of another one, and reports whether it has them.
func sameAccess(part *os.File, info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	if own, err := part.Stat(); err == nil {
		now, ok := own.Sys().(*syscall.Stat_t)
		if ok && (now.Uid != stat.Uid || now.Gid != stat.Gid) && part.Chown(int(stat.Uid), int(stat.Gid)) != nil {
			return false
		}
	}
	return part.Chmod(info.Mode().Perm()|info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky)) == nil
}

// Commit gives the target its content.
func (f *File) Commit() error {
	if f.target == "" {
		return f.Close()
	}
	if f.replace {
		err := errors.Join(f.Sync(), f.Close())
		if err == nil {
			err = os.Rename(f.Name(), f.target)
		}
		return err
	}
	return errors.Join(f.copy(), f.Close(), os.Remove(f.Name()))
}

func (f *File) copy() error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	target, err := os.OpenFile(f.target, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, f.File)
	return errors.Join(err, target.Close())
}

// Discard removes what was not committed. After a commit it has no effect.
func (f *File) Discard() {
	_ = f.Close() // it is closed if it was committed
	if f.target != "" {
		_ = os.Remove(f.Name()) // it is gone if it was committed
	}
}

// WriteFile writes a whole file, as [File] does.
func WriteFile(path string, content []byte, mode fs.FileMode) error {
	f, err := CreateFile(path, mode)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(content); err != nil {
		return err
	}
	return f.Commit()
}

// Interruptible returns a reader that ends with the context: a read of a terminal or a pipe would block until there is
// input. The read goes on until the end of the process.
func Interruptible(ctx context.Context, r io.Reader) io.Reader {
	return &interruptible{ctx: ctx, from: r}
}

type interruptible struct {
	ctx  context.Context //nolint:containedctx // that of the process
	from io.Reader
	left []byte // of the last read
}

type readResult struct {
	content []byte
	err     error
}

// Read implements [io.Reader].
func (r *interruptible) Read(p []byte) (int, error) {
	if len(r.left) == 0 {
		done := make(chan readResult, 1)
		go func() {
			buffer := make([]byte, max(len(p), 1))
			n, err := r.from.Read(buffer)
			done <- readResult{buffer[:n], err}
		}()
		select {
		case <-r.ctx.Done():
			return 0, fmt.Errorf("interrupted: %w", context.Cause(r.ctx))
		case result := <-done:
			if len(result.content) == 0 {
				return 0, result.err
			}
			r.left = result.content
		}
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

package payload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	folderMode = 0o700
	// temporary begins the names of files that are being written. No digest begins so, as Path escapes dots.
	temporary = ".new-"
)

// Folder stores values as files below a folder, for installations on one machine.
//
// A file is complete or does not exist, also after a loss of power: it is written under a temporary name beside its
// own, synchronised with the disk and renamed. Folders and files are readable by their owner only. Operations of a disk
// that hangs do not end with their contexts.
type Folder struct{ root string }

var _ Store = (*Folder)(nil)

// OpenFolder returns the store in a folder, which must exist: a missing one may be a disk that is not mounted.
func OpenFolder(root string) (*Folder, error) {
	info, err := os.Stat(root)
	switch {
	case err != nil:
		return nil, fmt.Errorf("open the folder of payloads: %w: create it, or mount its disk", err)
	case !info.IsDir():
		return nil, fmt.Errorf("open the folder of payloads: %q is not a folder", root)
	}
	return &Folder{root: root}, nil
}

// String implements [Store].
func (s *Folder) String() string { return fmt.Sprintf("folder %q", s.root) }

// Put implements [Store]. A value that exists gets the present time.
func (s *Folder) Put(ctx context.Context, runID, digest string, value []byte) error {
	if err := TooLarge(runID, value); err != nil {
		return err
	}
	path, err := Path(runID, digest)
	if err != nil {
		return fmt.Errorf("keep a payload: %w", err)
	}
	return s.do(ctx, "keep a payload", func() error { return s.put(filepath.Join(s.root, path), value) })
}

func (s *Folder) put(file string, value []byte) error {
	now := time.Now()
	if info, err := os.Stat(file); err == nil && info.Size() == int64(len(value)) {
		return os.Chtimes(file, now, now)
	}
	if err := s.makeFolders(filepath.Dir(file)); err != nil {
		return err
	}
	return write(file, value)
}

// makeFolders makes the folders of a run and of its shard, and synchronises what has their names.
func (s *Folder) makeFolders(ofRun string) error {
	shard := filepath.Dir(ofRun)
	for _, folder := range []string{shard, ofRun} {
		switch err := os.Mkdir(folder, folderMode); {
		case errors.Is(err, fs.ErrExist):
		case err != nil:
			return err
		default:
			if err := syncFolder(filepath.Dir(folder)); err != nil {
				return err
			}
		}
	}
	return nil
}

// write writes a file atomically.
func write(file string, value []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(file), temporary) // with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the first error is the cause
		}
	}()
	_, err = f.Write(value)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), file); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(file))
}

// syncFolder makes the names in a folder durable.
func syncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Get implements [Store].
func (s *Folder) Get(ctx context.Context, runID, digest string) (value []byte, found bool, err error) {
	path, err := Path(runID, digest)
	if err != nil {
		return nil, false, nil //nolint:nilerr // Put refuses such a value, so it does not exist
	}
	err = s.do(ctx, "read a payload", func() (err error) {
		value, err = os.ReadFile(filepath.Join(s.root, path))
		if errors.Is(err, fs.ErrNotExist) {
			return s.exists() // an unmounted disk has no values, and says nothing about them
		}
		found = err == nil
		return err
	})
	return value, found, err
}

// exists returns an error while the folder itself is missing.
func (s *Folder) exists() error {
	_, err := os.Stat(s.root)
	return err
}

// Writable implements [Store]: it writes a file and removes it.
func (s *Folder) Writable(ctx context.Context) error {
	return s.do(ctx, "check that payloads can be kept", func() error {
		f, err := os.CreateTemp(s.root, temporary)
		if err != nil {
			return err
		}
		_, err = f.WriteString("signalbox")
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	})
}

// Stale implements [Store]. A position is the path of a run.
func (s *Folder) Stale(ctx context.Context, age time.Duration, after string,
	limit int) (runIDs []string, next string, err error) {
	const doing = "list payloads"
	examined, before := 0, time.Now().Add(-age)
	for _, shard := range Shards() {
		if last, _, _ := strings.Cut(after, "/"); shard < last {
			continue
		}
		var names []string
		if err := s.do(ctx, doing, func() (err error) {
			names, err = s.names(shard)
			return err
		}); err != nil {
			return nil, "", err
		}
		for _, name := range names {
			path := shard + "/" + name
			runID, ok := RunOf(path)
			if !ok || path <= after {
				continue
			}
			if examined == limit {
				return runIDs, next, nil
			}
			examined, next = examined+1, path
			var old bool
			if err := s.do(ctx, doing, func() (err error) {
				old, err = s.older(path, before)
				return err
			}); err != nil {
				return nil, "", err
			}
			if old {
				runIDs = append(runIDs, runID)
			}
		}
	}
	return runIDs, "", nil
}

// names returns the names in a folder, in order.
func (s *Folder) names(folder string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.root, folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, s.exists()
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names, err
}

// older reports whether a run has a value that was written before the given time. What a crash has left counts as well:
// an empty folder, and a file under a temporary name.
func (s *Folder) older(run string, before time.Time) (bool, error) {
	folder := filepath.Join(s.root, run)
	entries, err := os.ReadDir(folder)
	if err == nil && len(entries) == 0 {
		var info fs.FileInfo
		if info, err = os.Stat(folder); err == nil {
			return info.ModTime().Before(before), nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // deleted meanwhile
	}
	for _, e := range entries {
		if info, failed := e.Info(); failed == nil && info.ModTime().Before(before) {
			return true, nil
		}
	}
	return false, err
}

// DeleteRun implements [Store].
func (s *Folder) DeleteRun(ctx context.Context, runID string) (deleted int64, err error) {
	path, err := RunPath(runID)
	if err != nil {
		return 0, nil //nolint:nilerr // Put refuses such values, so there are none
	}
	err = s.do(ctx, "delete payloads", func() error {
		folder := filepath.Join(s.root, path)
		entries, err := os.ReadDir(folder)
		if errors.Is(err, fs.ErrNotExist) {
			return s.exists()
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := os.Remove(filepath.Join(folder, e.Name())); err != nil {
				return err
			}
			if !strings.HasPrefix(e.Name(), temporary) {
				deleted++
			}
		}
		if err := os.Remove(folder); !errors.Is(err, fs.ErrExist) { // otherwise a value was put meanwhile
			return err
		}
		return nil
	})
	return deleted, err
}

// do runs an operation unless ctx has ended, and explains its error.
func (s *Folder) do(ctx context.Context, doing string, operation func() error) error {
	err := ctx.Err()
	if err == nil {
		err = operation()
	}
	return Unavailable(ctx, doing, s, err)
}

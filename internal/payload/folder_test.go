package payload_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/payload"
	"github.com/signalbox-dev/signalbox/internal/payload/payloadtest"
)

func open(t *testing.T, root string) payload.Store {
	t.Helper()
	s, err := payload.OpenFolder(root)
	require.NoError(t, err)
	return s
}

func TestConformanceOfFolder(t *testing.T) {
	t.Parallel()
	payloadtest.Run(t, func(t *testing.T) payloadtest.Open {
		root := t.TempDir()
		return func() payload.Store { return open(t, root) }
	})
}

// files returns the paths below a folder with their modes.
func files(t *testing.T, root string) map[string]os.FileMode {
	t.Helper()
	found := map[string]os.FileMode{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := entry.Info()
		require.NoError(t, err)
		if path != root {
			found[path[len(root)+1:]] = info.Mode().Perm()
		}
		return nil
	}))
	return found
}

// The paths are part of the format: values of earlier releases are found under them, and can be copied to a bucket.
func TestFilesAreOfTheirOwnerOnly(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root)
	require.NoError(t, s.Writable(t.Context()))
	require.NoError(t, s.Put(t.Context(), "run/1", "00ff", []byte("value")))
	require.Equal(t, map[string]os.FileMode{"a7": 0o700, "a7/run%2F1": 0o700, "a7/run%2F1/00ff": 0o600}, files(t, root),
		"no temporary file is left")
}

// The disk is not mounted: neither is a value reported as missing, nor is it written elsewhere.
func TestMissingFolderIsUnavailable(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "mounted")
	_, err := payload.OpenFolder(root)
	require.ErrorContains(t, err, "create it, or mount its disk")
	require.NoError(t, os.Mkdir(root, 0o700))
	s := open(t, root)
	require.NoError(t, os.Remove(root))
	_, _, getErr := s.Get(t.Context(), "r1", "d1")
	_, _, staleErr := s.Stale(t.Context(), time.Hour, "", 1)
	_, deleteErr := s.DeleteRun(t.Context(), "r1")
	for _, err := range []error{
		s.Put(t.Context(), "r1", "d1", nil), getErr, staleErr, deleteErr, s.Writable(t.Context())} {
		require.ErrorContains(t, err, `folder "`+root+`"`)
		require.True(t, apperror.Is(err, apperror.StoreUnavailable), err)
	}
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = payload.OpenFolder(file)
	require.ErrorContains(t, err, "is not a folder")
}

// A crash has left an empty folder of a run and a file under a temporary name.
func TestRemainsOfACrashAreStale(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root)
	require.NoError(t, s.Put(t.Context(), "r1", "d1", []byte("value")))
	_, err := s.DeleteRun(t.Context(), "r1")
	require.NoError(t, err)
	run := filepath.Join(root, "82", "r1")
	_, err = os.Stat(run)
	require.ErrorIs(t, err, os.ErrNotExist)

	require.NoError(t, os.Mkdir(run, 0o700))
	stale := func() []string {
		ids, _, err := s.Stale(t.Context(), time.Hour, "", 10)
		require.NoError(t, err)
		return ids
	}
	require.Empty(t, stale())
	old := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(run, old, old))
	require.Equal(t, []string{"r1"}, stale())
	left := filepath.Join(run, ".new-1")
	require.NoError(t, os.WriteFile(left, []byte("half"), 0o600))
	require.Empty(t, stale())
	require.NoError(t, os.Chtimes(left, old, old))
	require.Equal(t, []string{"r1"}, stale())
	deleted, err := s.DeleteRun(t.Context(), "r1")
	require.NoError(t, err)
	require.Zero(t, deleted, "no value was deleted")
	require.NotContains(t, files(t, root), "82/r1")
}

// A value that is put again, by a run that got the ID of a deleted one, is as young as that.
func TestPuttingAgainRenewsTheAge(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root)
	require.NoError(t, s.Put(t.Context(), "r1", "d1", []byte("value")))
	old := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(root, "82", "r1", "d1"), old, old))
	require.NoError(t, s.Put(t.Context(), "r1", "d1", []byte("value")))
	ids, _, err := s.Stale(t.Context(), time.Hour, "", 10)
	require.NoError(t, err)
	require.Empty(t, ids)
}

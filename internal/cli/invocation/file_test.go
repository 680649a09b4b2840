package invocation_test

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
)

func stat(t *testing.T, path string) *syscall.Stat_t {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	s, ok := info.Sys().(*syscall.Stat_t)
	require.True(t, ok)
	return s
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// TestWriteFileKeepsWhatThePathIs: a regular file is replaced with its mode and links, everything else is written
// through.
func TestWriteFileKeepsWhatThePathIs(t *testing.T) {
	t.Parallel()
	const old, fresh = "old\n", "new and longer\n"
	in := func(t *testing.T, name string) string { t.Helper(); return filepath.Join(t.TempDir(), name) }
	write := func(t *testing.T, path string) {
		t.Helper()
		require.NoError(t, invocation.WriteFile(path, []byte(fresh), 0o666))
	}
	t.Run("new", func(t *testing.T) {
		t.Parallel()
		path := in(t, "f")
		write(t, path)
		require.Equal(t, fresh, content(t, path))
		require.Equal(t, uint32(0), stat(t, path).Mode&0o111)
		entries, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		require.Len(t, entries, 1, "no part is left")
	})
	for _, mode := range []fs.FileMode{0o644, 0o600, 0o664} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			path := in(t, "f")
			require.NoError(t, os.WriteFile(path, []byte(old), mode))
			require.NoError(t, os.Chmod(path, mode))
			write(t, path)
			require.Equal(t, fresh, content(t, path))
			require.Equal(t, uint32(mode), stat(t, path).Mode&0o777)
		})
	}
	t.Run("owner", func(t *testing.T) {
		t.Parallel()
		if os.Getuid() != 0 {
			t.Skip("only root may give files away")
		}
		path := in(t, "f")
		require.NoError(t, os.WriteFile(path, []byte(old), 0o600))
		require.NoError(t, os.Chown(path, 12, 34))
		write(t, path)
		require.Equal(t, []uint32{12, 34}, []uint32{stat(t, path).Uid, stat(t, path).Gid})
	})
	t.Run("symbolic links", func(t *testing.T) {
		t.Parallel()
		target := in(t, "f")
		require.NoError(t, os.WriteFile(target, []byte(old), 0o644))
		first, second := filepath.Join(filepath.Dir(target), "first"), filepath.Join(filepath.Dir(target), "second")
		require.NoError(t, os.Symlink("f", first))
		require.NoError(t, os.Symlink(first, second))
		write(t, second)
		require.Equal(t, fresh, content(t, target))
		for _, link := range []string{first, second} {
			require.Equal(t, uint32(syscall.S_IFLNK), stat(t, link).Mode&syscall.S_IFMT)
		}
		dangling := filepath.Join(filepath.Dir(target), "dangling")
		require.NoError(t, os.Symlink("not-there", dangling))
		write(t, dangling)
		require.Equal(t, fresh, content(t, filepath.Join(filepath.Dir(target), "not-there")))
		loop := filepath.Join(filepath.Dir(target), "loop")
		require.NoError(t, os.Symlink("loop", loop))
		require.ErrorIs(t, invocation.WriteFile(loop, []byte(fresh), 0o666), syscall.ELOOP)
	})
	t.Run("hard link", func(t *testing.T) {
		t.Parallel()
		path := in(t, "f")
		require.NoError(t, os.WriteFile(path, []byte("a longer old content\n"), 0o600))
		require.NoError(t, os.Link(path, path+"2"))
		write(t, path)
		require.Equal(t, fresh, content(t, path+"2"))
		require.EqualValues(t, 2, stat(t, path).Nlink)
	})
	t.Run("FIFO", func(t *testing.T) {
		t.Parallel()
		path := in(t, "fifo")
		require.NoError(t, syscall.Mkfifo(path, 0o600))
		read := make(chan string, 1)
		go func() {
			text, _ := os.ReadFile(path)
			read <- string(text)
		}()
		write(t, path)
		require.Equal(t, fresh, <-read)
		require.Equal(t, uint32(syscall.S_IFIFO), stat(t, path).Mode&syscall.S_IFMT)
	})
	t.Run("character device", func(t *testing.T) {
		t.Parallel()
		before := stat(t, os.DevNull)
		write(t, os.DevNull)
		require.Equal(t, before.Mode, stat(t, os.DevNull).Mode)
		require.Equal(t, before.Ino, stat(t, os.DevNull).Ino)
	})
	t.Run("folder", func(t *testing.T) {
		t.Parallel()
		require.ErrorIs(t, invocation.WriteFile(t.TempDir(), []byte(fresh), 0o666), syscall.EISDIR)
	})
	t.Run("discarded", func(t *testing.T) {
		t.Parallel()
		path := in(t, "f")
		require.NoError(t, os.WriteFile(path, []byte(old), 0o600))
		f, err := invocation.CreateFile(path, 0o666)
		require.NoError(t, err)
		_, err = f.WriteString(fresh)
		require.NoError(t, err)
		f.Discard()
		require.Equal(t, old, content(t, path))
		entries, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		require.Len(t, entries, 1)
	})
}

func TestInterruptibleReader(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte("0123456789"), 10_000)
	got, err := io.ReadAll(invocation.Interruptible(t.Context(), bytes.NewReader(text)))
	require.NoError(t, err)
	require.Equal(t, text, got)

	ctx, cancel := context.WithCancel(t.Context())
	from, to := io.Pipe()
	defer func() { require.NoError(t, to.Close()) }()
	ended := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(invocation.Interruptible(ctx, from))
		ended <- err
	}()
	_, err = to.Write([]byte("begun"))
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

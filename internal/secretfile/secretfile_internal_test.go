package secretfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOthersMayNotReadOrChange(t *testing.T) {
	t.Parallel()
	for mode, want := range map[fs.FileMode]string{
		0o600: "", 0o400: "", 0o440: "", 0o640: "", 0o700: "", 0o660: "can be changed by other users",
		0o620: "can be changed by other users",
		0o602: "can be changed by other users", 0o666: "can be changed by other users", 0o644: "can be read by all users " +
			"of the machine", 0o444: "can be read by all users of the machine",
		fs.ModeNamedPipe | 0o666: "", fs.ModeCharDevice | fs.ModeDevice | 0o666: "",
	} {
		require.Equal(t, want, exposure(mode, false), mode)
		require.Empty(t, exposure(mode, true), "the mount decides: %s", mode)
	}
}

func TestReadRefusesByNameWithTheCommand(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "first.key")
	require.NoError(t, os.WriteFile(path, []byte("secret\n"), 0o600))
	content, err := Read(path)
	require.NoError(t, err)
	require.Equal(t, "secret\n", string(content))

	require.NoError(t, os.Chmod(path, 0o644))
	_, err = Read(path)
	require.ErrorContains(t, err,
		`first.key" holds a secret and can be read by all users of the machine (mode 0644): run `)
	require.ErrorContains(t, err, "`chmod 600 \""+path+"\"`")
	require.NoError(t, os.Chmod(path, 0o600))
	link := path + ".link"
	require.NoError(t, os.Symlink(path, link))
	_, err = Read(link)
	require.NoError(t, err, "the mode of a link means nothing")
	_, err = Read(path + ".missing")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestFilesOfAnotherUserAreMendedForTheGroup(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	info, err := os.Stat(path)
	require.NoError(t, err)
	other := *info.Sys().(*syscall.Stat_t)
	other.Uid++
	require.Regexp(t, `^chgrp \d+ "/k" && chmod 640 "/k"$`, mend("/k", owned{info, &other}))
}

type owned struct {
	fs.FileInfo

	stat *syscall.Stat_t
}

func (o owned) Sys() any { return o.stat }

package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/store"
)

func keyFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, keyring.Generate(), 0o600))
	return file
}

func TestCheckOfTheProcessorLimit(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string]string{
		"20000 100000": "the control group allows 20 % of a processor, and a server requires 25 % of a processor; raise " +
			"its limit, or work takes longer",
		"25000 100000": "", "max 100000": "", "": "",
	} {
		var notes []string
		root := fstest.MapFS{"proc/self/cgroup": {Data: []byte("0::/\n")}, "sys/fs/cgroup/cpu.max": {Data: []byte(limit)}}
		checkProcessors(root, func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) })
		require.Equal(t, want, strings.Join(notes, ""), limit)
	}
}

func TestCheckOfSealingKeys(t *testing.T) {
	t.Parallel()
	dsn, right := filepath.Join(t.TempDir(), "signalbox.db"), keyFile(t)
	checks := func(key, dsn string) (config.Violations, []string) {
		t.Helper()
		var notes []string
		cfg := load(t, map[string]string{"SIGNALBOX_ENCRYPTION_KEYS": "k1=" + key, "SIGNALBOX_STORE_DSN": dsn})
		return CheckServices(t.Context(), cfg, func(format string, args ...any) {
			notes = append(notes, fmt.Sprintf(format, args...))
		}), notes
	}
	problems, notes := checks(right, dsn)
	require.Empty(t, problems)
	require.Empty(t, notes)
	require.NoFileExists(t, dsn, "a check creates no database")

	s, err := store.Open(t.Context(), store.Options{Driver: store.SQLite, DSN: dsn, AutoMigrate: true})
	require.NoError(t, err)
	problems, notes = checks(right, dsn)
	require.Empty(t, problems, "the database has no tables yet")
	require.Empty(t, notes)
	require.NoError(t, s.Start(t.Context()))
	require.NoError(t, s.RecordSealingKey(t.Context(), "k1", "another"))
	require.NoError(t, s.Stop(t.Context()))
	problems, notes = checks(right, dsn)
	require.Len(t, problems, 1)
	require.Equal(t, "encryption.keys", problems[0].Path)
	require.Contains(t, problems[0].Message, `the key "k1" is not the one that sealed values here`)
	require.Empty(t, notes)

	require.NoError(t, os.WriteFile(dsn, []byte("this is not a database, but a file of the same name and size"), 0o600))
	problems, notes = checks(right, dsn)
	require.Empty(t, problems)
	require.Len(t, notes, 1, "unknown is not fine")
}

package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/config"
)

func TestKindsOfDSN(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"postgres://h/d": true, "postgresql://h/d": true, "host=h dbname=d": true, "user=u": true, "service = s": true,
		"signalbox.db": false, "/var/lib/x.db": false, "file:x.db?mode=rw": false, "file:x.db?host=1": false, "": false,
	} {
		require.Equal(t, want, config.IsPostgresDSN(text), text)
	}
}

func TestPasswordsInTheOpen(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"postgres://u:p@h/d": true, "postgres://h/d?password=p": true, "postgres://h/d?sslpassword=p": true,
		"host=h password=p": true, "host=h PASSWORD = 'p q'": true,
		"postgres://u@h/d": false, "postgres://u:${env:P}@h/d": false, "host=h password=${file:/p}": false, "host=h": false,
		"x.db": false,
	} {
		require.Equal(t, want, config.HasPlainPassword(text), text)
	}
}

func TestReferencesInDSN(t *testing.T) {
	t.Parallel()
	lookup := func(name string) (string, bool) {
		value, ok := map[string]string{"P": `a'b\c@d`, "EMPTY": ""}[name]
		return value, ok
	}
	for text, want := range map[string]string{
		"${env:P}":                  `a'b\c@d`,
		"postgres://u:${env:P}@h/d": "postgres://u:a%27b%5Cc%40d@h/d",
		"host=h password=${env:P}":  `host=h password='a\'b\\c@d'`,
		"nothing to do":             "nothing to do",
	} {
		got, violations := config.ResolveDSN(text, lookup)
		require.Empty(t, violations, text)
		require.Equal(t, want, got)
	}
	_, violations := config.ResolveDSN("${env:EMPTY} ${env:NOPE} ${P} ${file:/no/such/file}", lookup)
	require.Len(t, violations, 4, "all at once")
	exposed := filepath.Join(t.TempDir(), "password")
	require.NoError(t, errors.Join(os.WriteFile(exposed, []byte("p"), 0o600), os.Chmod(exposed, 0o604)))
	_, refused := config.ResolveDSN("${file:"+exposed+"}", lookup)
	require.Len(t, refused, 1)
	require.Contains(t, refused[0], "can be read by all users of the machine")
	require.Equal(t, "${P}: is not a reference; write ${env:NAME} or ${file:/path}", violations[2])
}

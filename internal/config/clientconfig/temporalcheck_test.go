package clientconfig_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/config/clientconfig"
)

// lines loads the configuration that the variables describe and returns every violation of it.
func lines(t *testing.T, env config.Environment) []string {
	t.Helper()
	_, err := config.Load(config.Options{Env: env, Layers: layers()})
	var found config.Violations
	if !errors.As(err, &found) {
		require.NoError(t, err)
	}
	var text []string
	for _, p := range found {
		text = append(text, p.String())
	}
	return text
}

func TestEveryViolationOfTheFilesAtOnce(t *testing.T) {
	t.Parallel()
	cert, key := keyPair(t)
	_, otherKey := keyPair(t)
	folder := t.TempDir()
	tests := map[string]struct {
		cert, key, ca, apiKey string
		want                  []string
	}{
		"all good": {cert, key, cert, write(t, "k", "abc\n"), nil},
		"nothing is there": {"/nowhere/c", "/nowhere/k", "/nowhere/ca", "/nowhere/a",
			[]string{"cert_file (SIGNALBOX_TEMPORAL_TLS_CERT_FILE): the file cannot be read", "key_file", "ca_file",
				"api_key_file"}},
		"folders": {folder, folder, folder, folder,
			[]string{"api_key_file", "cert_file", "key_file",
				"ca_file (SIGNALBOX_TEMPORAL_TLS_CA_FILE): the file cannot be read"}},
		"key of another": {cert, otherKey, "", "", []string{"key_file (SIGNALBOX_TEMPORAL_TLS_KEY_FILE): the private " +
			"key does not go with the client certificate: tls: private key does not match public key"}},
		"swapped": {key, cert, "", "", []string{"cert_file (SIGNALBOX_TEMPORAL_TLS_CERT_FILE): the client " +
			"certificate cannot be used: no certificate in PEM form", "key_file (SIGNALBOX_TEMPORAL_TLS_KEY_FILE): the " +
			"private key is none"}},
		"key alone": {"", key, "", "",
			[]string{"cert_file (SIGNALBOX_TEMPORAL_TLS_CERT_FILE): is empty while key_file is set"}},
		"authorities are not": {cert, key, key, "",
			[]string{"ca_file (SIGNALBOX_TEMPORAL_TLS_CA_FILE): the authorities hold no certificate in PEM form"}},
		"empty API key": {"", "", "", write(t, "k", " \n"),
			[]string{"api_key_file (SIGNALBOX_TEMPORAL_API_KEY_FILE): the file \""}},
		"garbled certificate": {write(t, "c", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), key, "", "",
			[]string{"cert_file (SIGNALBOX_TEMPORAL_TLS_CERT_FILE): the client certificate cannot be used: x509"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := lines(t, config.Environment{
				"SIGNALBOX_TEMPORAL_TLS_CERT_FILE": test.cert, "SIGNALBOX_TEMPORAL_TLS_KEY_FILE": test.key,
				"SIGNALBOX_TEMPORAL_TLS_CA_FILE": test.ca, "SIGNALBOX_TEMPORAL_API_KEY_FILE": test.apiKey,
			})
			require.Len(t, found, len(test.want), "%q", found)
			for i, want := range test.want {
				require.Contains(t, found[i], want)
			}
		})
	}
}

func TestInlineCredentialsAreChecked(t *testing.T) {
	t.Parallel()
	certPath, _ := keyPair(t)
	cert, err := os.ReadFile(certPath)
	require.NoError(t, err)
	require.Equal(t, []string{
		"Temporal's own configuration: the client certificate and its private key are given inline, but one of them is " +
			"missing; give both",
		"Temporal's own configuration: the authorities hold no certificate in PEM form; give the certificates of those " +
			"that sign Temporal's",
	}, lines(t, config.Environment{
		"TEMPORAL_TLS_CLIENT_CERT_DATA": string(cert), "TEMPORAL_TLS_SERVER_CA_CERT_DATA": "nothing"}))
}

// A certificate outside its validity may be rotated, or become valid, while the server runs.
func TestValidityHeals(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		notBefore, notAfter time.Duration
		want                string
	}{
		"expired": {-2 * time.Hour, -time.Hour, "the client certificate expired at 2"},
		"not yet": {time.Hour, 2 * time.Hour, "the client certificate is not valid before 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cert, key := keyPairOf(t, time.Now().Add(test.notBefore), time.Now().Add(test.notAfter))
			env := config.Environment{"SIGNALBOX_TEMPORAL_TLS_CERT_FILE": cert, "SIGNALBOX_TEMPORAL_TLS_KEY_FILE": key}
			cfg := load(t, env)
			require.Len(t, cfg.Warnings, 1)
			require.Contains(t, cfg.Warnings[0].String(),
				"temporal.tls.cert_file (SIGNALBOX_TEMPORAL_TLS_CERT_FILE): "+test.want)
			_, err := clientconfig.Temporal(cfg.Temporal)
			require.NoError(t, err, "a client can be created nevertheless")
		})
	}
	cfg := load(t, config.Environment{"SIGNALBOX_TEMPORAL_TLS_DISABLED": "true"})
	require.Empty(t, cfg.Warnings)
}

func TestIdentityChangesWithCredentials(t *testing.T) {
	t.Parallel()
	cert, key := keyPair(t)
	apiKey := write(t, "api-key", "hunter2")
	temporal := config.Default().Temporal
	temporal.TLS = config.TLS{CertFile: cert, KeyFile: key, CAFile: cert}
	temporal.APIKeyFile = apiKey
	identity := func(change func(*config.Temporal)) string {
		changed := temporal
		if change != nil {
			change(&changed)
		}
		name, err := clientconfig.TemporalIdentity(changed)
		require.NoError(t, err)
		require.NotContains(t, name, "hunter2")
		return name
	}
	before := identity(nil)
	require.Equal(t, before, identity(nil))
	seen := map[string]string{before: "before"}
	for what, change := range map[string]func(*config.Temporal){
		"address":     func(c *config.Temporal) { c.Address = "elsewhere:7233" },
		"namespace":   func(c *config.Temporal) { c.Namespace = "other" },
		"no TLS":      func(c *config.Temporal) { c.TLS.Disabled = true },
		"server name": func(c *config.Temporal) { c.TLS.ServerName = "x" },
		"no CA":       func(c *config.Temporal) { c.TLS.CAFile = "" },
		"inline CA":   func(c *config.Temporal) { c.TLS.CAFile, c.Profile.CAPEM = "", []byte("x") },
		"authority":   func(c *config.Temporal) { c.Profile.Authority = "x" },
	} {
		name := identity(change)
		require.Empty(t, seen[name], what)
		seen[name] = what
	}
	for _, file := range []string{cert, key, apiKey} {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, append(content, '\n'), 0o600))
		name := identity(nil)
		require.Empty(t, seen[name], file)
		seen[name] = file
		require.NoError(t, os.WriteFile(file, content, 0o600))
		require.Equal(t, before, identity(nil))
	}
	temporal.TLS.CAFile = filepath.Join(t.TempDir(), "gone")
	_, err := clientconfig.TemporalIdentity(temporal)
	require.ErrorContains(t, err, "temporal.tls.ca_file")
}

// Reload reads rotated files; a file that is missing for a moment is an error that can be retried.
func TestReloadReadsTheFilesAgain(t *testing.T) {
	t.Parallel()
	temporal := config.Default().Temporal
	temporal.TLS.CAFile, _ = keyPair(t)
	reload := clientconfig.ReloadTemporal(temporal)
	options, err := reload()
	require.NoError(t, err)
	first := options.ConnectionOptions.TLS.RootCAs

	content, err := os.ReadFile(temporal.TLS.CAFile)
	require.NoError(t, err)
	require.NoError(t, os.Remove(temporal.TLS.CAFile))
	_, err = reload()
	require.ErrorContains(t, err, "temporal.tls.ca_file")
	other, _ := keyPair(t)
	added, err := os.ReadFile(other)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(temporal.TLS.CAFile, append(content, added...), 0o600))
	options, err = reload()
	require.NoError(t, err)
	require.False(t, first.Equal(options.ConnectionOptions.TLS.RootCAs))
}

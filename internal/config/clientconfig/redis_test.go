package clientconfig_test

import (
	"crypto/tls"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/config/clientconfig"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// loadRedis reads a configuration with these variables, without the prefix SIGNALBOX_REDIS_.
func loadRedis(t *testing.T, now time.Time, variables map[string]string) (*config.Config, []string) {
	t.Helper()
	env := config.Environment{}
	for name, value := range variables {
		env["SIGNALBOX_REDIS_"+name] = value
	}
	layer := clientconfig.RedisLayer(func() time.Time { return now })
	cfg, err := config.Load(config.Options{Env: env, Layers: []config.Layer{layer}})
	var found config.Violations
	if !errors.As(err, &found) {
		require.NoError(t, err)
		found = cfg.Warnings
	}
	var lines []string
	for _, p := range found {
		lines = append(lines, p.String())
	}
	return cfg, lines
}

// pair returns the files of a certificate that is valid for an hour around noon, and of its key.
func pair(t *testing.T) (cert, key string) {
	t.Helper()
	return keyPairOf(t, noon.Add(-30*time.Minute), noon.Add(30*time.Minute))
}

func TestRedisOptions(t *testing.T) {
	t.Parallel()
	cfg, violations := loadRedis(t, noon,
		map[string]string{"URL": "redis://ada:x@h:1/2", "PREFIX": "p:", "TIMEOUT": "700ms"})
	require.Empty(t, violations)
	options, err := clientconfig.Redis(cfg.Redis)
	require.NoError(t, err)
	require.Equal(t, "redis://ada:x@h:1/2", options.URL)
	require.Equal(t, "p:", options.Prefix)
	require.Equal(t, 700*time.Millisecond, options.Timeout)
	require.Nil(t, options.TLS)
	require.Nil(t, options.Password)

	cfg, violations = loadRedis(t, noon,
		map[string]string{"ADDRESSES": "a:1,b:2", "MODE": "sentinel", "MASTER_NAME": "m", "USERNAME": "ada"})
	require.Empty(t, violations)
	options, err = clientconfig.Redis(cfg.Redis)
	require.NoError(t, err)
	require.Equal(t, []string{"a:1", "b:2"}, options.Addresses)
	require.Equal(t, []any{"m", "ada", false}, []any{options.MasterName, options.Username, options.Cluster})

	cfg, violations = loadRedis(t, noon, map[string]string{"ADDRESSES": "a:1", "MODE": "cluster", "TLS_ENABLED": "true"})
	require.Empty(t, violations)
	options, err = clientconfig.Redis(cfg.Redis)
	require.NoError(t, err)
	require.True(t, options.Cluster)
	require.NotNil(t, options.TLS)
	require.Nil(t, options.TLS.RootCAs, "the system's")
}

// A rotated password and a rotated certificate are used without a restart.
func TestRotatedCredentialsOfRedis(t *testing.T) {
	t.Parallel()
	cert, key := pair(t)
	password := write(t, "file", "old\n")
	cfg, violations := loadRedis(t, noon, map[string]string{
		"URL": "redis://h", "PASSWORD_FILE": password, "TLS_CERT_FILE": cert, "TLS_KEY_FILE": key, "TLS_CA_FILE": cert,
		"TLS_SERVER_NAME": "redis",
	})
	require.Empty(t, violations)
	options, err := clientconfig.Redis(cfg.Redis)
	require.NoError(t, err)
	require.Equal(t, "redis", options.TLS.ServerName)
	require.NotNil(t, options.TLS.RootCAs)
	now, err := options.Password()
	require.NoError(t, err)
	require.Equal(t, "old", now)
	first, err := options.TLS.GetClientCertificate(&tls.CertificateRequestInfo{})
	require.NoError(t, err)

	newCert, newKey := pair(t)
	require.NoError(t, os.WriteFile(password, []byte("new"), 0o600))
	require.NoError(t, os.Rename(newCert, cert))
	require.NoError(t, os.Rename(newKey, key))
	now, err = options.Password()
	require.NoError(t, err)
	require.Equal(t, "new", now)
	second, err := options.TLS.GetClientCertificate(&tls.CertificateRequestInfo{})
	require.NoError(t, err)
	require.NotEqual(t, first.Certificate, second.Certificate)

	require.NoError(t, os.WriteFile(password, nil, 0o600))
	_, err = options.Password()
	require.ErrorContains(t, err, "is empty")
	_, err = clientconfig.Redis(cfg.Redis)
	require.ErrorContains(t, err, "redis.password_file")
}

func TestEveryViolationOfTheFilesOfRedisAtOnce(t *testing.T) {
	t.Parallel()
	cert, key := pair(t)
	_, other := pair(t)
	for name, test := range map[string]struct {
		now                     time.Time
		cert, key, ca, password string
		want                    []string
		heals                   bool
	}{
		"all good": {now: noon, cert: cert, key: key, ca: cert, password: write(t, "file", "x")},
		"all wrong": {now: noon, cert: cert, key: other, ca: key, password: write(t, "file", "\n"),
			want: []string{"password_file (SIGNALBOX_REDIS_PASSWORD_FILE): the password", "ca_file", "cert_file"}},
		"swapped": {now: noon, cert: key, key: cert,
			want: []string{"cert_file (SIGNALBOX_REDIS_TLS_CERT_FILE): the client certificate and its key cannot be used"}},
		"missing": {now: noon, cert: "/nowhere/c", key: "/nowhere/k", ca: "/nowhere/a", password: "/nowhere/p",
			want: []string{"cannot be read", "cannot be read", "cannot be read", "cannot be read"}},
		"half a pair": {now: noon, cert: cert,
			want: []string{"redis.tls.key_file (SIGNALBOX_REDIS_TLS_KEY_FILE): is empty"}},
		"expired": {now: noon.Add(time.Hour), cert: cert, key: key, want: []string{"expired at 2026-01-31 12:30:00"},
			heals: true},
		"not valid yet": {now: noon.Add(-time.Hour), cert: cert, key: key,
			want: []string{"not valid before 2026-01-31 11:30:00"}, heals: true},
		"nothing at all": {now: noon},
	} {
		cfg, lines := loadRedis(t, test.now, map[string]string{
			"URL": "redis://h", "TLS_CERT_FILE": test.cert, "TLS_KEY_FILE": test.key, "TLS_CA_FILE": test.ca,
			"PASSWORD_FILE": test.password,
		})
		require.Len(t, lines, len(test.want), "%s: %q", name, lines)
		for i, want := range test.want {
			require.Contains(t, lines[i], want, name)
		}
		require.Equal(t, len(test.want) == 0 || test.heals, cfg != nil, name)
		if cfg == nil || test.heals {
			continue
		}
		_, err := clientconfig.Redis(cfg.Redis)
		require.NoError(t, err, name)
	}
}

// Leases in memory work for one process only, and several may share a Postgres.
func TestPostgresNeedsRedis(t *testing.T) {
	t.Parallel()
	check := func(env config.Environment) error {
		_, err := config.Load(config.Options{Env: env, Layers: []config.Layer{clientconfig.RedisLayer(time.Now)}})
		return err
	}
	require.NoError(t, check(nil), "SQLite is for one process anyway")
	env := config.Environment{"SIGNALBOX_STORE_DRIVER": "postgres", "SIGNALBOX_STORE_DSN": "postgres://u@h/d"}
	require.EqualError(t, check(env),
		"redis.url (default): is empty while store.driver is postgres: without Redis, leases are in memory, "+
			"which is for one process on SQLite; set redis.url, or redis.addresses")
	env["SIGNALBOX_REDIS_ADDRESSES"] = "h:1"
	require.NoError(t, check(env))
	delete(env, "SIGNALBOX_REDIS_ADDRESSES")
	env["SIGNALBOX_REDIS_URL"] = "redis://:${env:NOWHERE}@h"
	require.ErrorContains(t, check(env), "redis.url (SIGNALBOX_REDIS_URL): ${env:NOWHERE}: the variable is not set")
}

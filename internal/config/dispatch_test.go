package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/config"
)

func TestRedisIsValidated(t *testing.T) {
	t.Parallel()
	for yaml, want := range map[string]string{
		"{url: 'redis://h:6379'}":                                     "",
		"{url: 'rediss://user@h/3'}":                                  "",
		"{url: 'redis://h:6379/0', mode: cluster}":                    "",
		"{addresses: ['h:6379']}":                                     "",
		"{addresses: ['a:1', 'b:2'], mode: cluster}":                  "",
		"{addresses: ['a:1', 'b:2'], mode: sentinel, master_name: m}": "",
		"{url: 'redis://h', addresses: ['h:1']}": "redis.addresses (signalbox.yaml:1): are given " +
			"beside redis.url",
		"{addresses: ['a:1', 'b:2']}": "redis.addresses (signalbox.yaml:1): name 2 servers while " +
			"redis.mode is standalone",
		"{addresses: [h]}": `redis.addresses (signalbox.yaml:1): "h" is not host:port`,
		"{mode: cluster}": "redis.addresses (default): are empty while redis.mode is " +
			"cluster",
		"{mode: clutser}": `redis.mode (signalbox.yaml:1): "clutser" is not a mode, did you mean "cluster"?`,
		"{addresses: ['a:1'], mode: sentinel}": "redis.master_name (default): is empty while redis.mode is " +
			"sentinel",
		"{url: 'redis://h', mode: sentinel, master_name: m}": "redis.url (signalbox.yaml:1): names one server while " +
			"redis.mode is sentinel",
		"{url: 'redis://h', master_name: m}": "redis.master_name (signalbox.yaml:1): is set while " +
			"redis.mode is standalone",
		"{url: 'redis://h/2', mode: cluster}": "redis.url (signalbox.yaml:1): names database 2 while " +
			"redis.mode is cluster",
		"{url: 'http://h'}":                     `redis.url (signalbox.yaml:1): begins with "http://"`,
		"{url: 'redis://'}":                     "redis.url (signalbox.yaml:1): names no host",
		"{url: 'redis://h/orders'}":             `redis.url (signalbox.yaml:1): names the database "/orders", which is not a number`,
		"{url: 'redis://h?dial_timeout=5'}":     "redis.url (signalbox.yaml:1): has parameters",
		"{url: 'redis://h:port'}":               "redis.url (signalbox.yaml:1): is not a URL",
		"{url: 'redis://ada@h', username: ada}": "redis.username (signalbox.yaml:1): is given beside a user",
		"{url: 'redis://h', prefix: 'a b'}":     `redis.prefix (signalbox.yaml:1): "a b" is not a prefix`,
		"{url: 'redis://h', prefix: '{a}'}":     `redis.prefix (signalbox.yaml:1): "{a}" holds a character`,
		"{url: 'redis://h', timeout: 1ms}":      "redis.timeout (signalbox.yaml:1): 1ms is too short",
		"{url: 'redis://h', timeout: 10s}": "redis.timeout (signalbox.yaml:1): 10s is too long: with " +
			"dispatch.ttl 9s and dispatch.renew 3s, a renewal has to succeed within 5s",
		"{url: 'redis://h', password_file: /nowhere}": "redis.password_file (signalbox.yaml:1): the file cannot be read",
		"{url: 'redis://:${file:/nowhere}@h'}": "redis.url (signalbox.yaml:1): ${file:/nowhere}: the file " +
			"cannot be read",
		"{url: 'redis://:hunter2@h'}": "redis.url (signalbox.yaml:1): holds a password in plain " +
			"text; refer to it as ${env:NAME} or ${file:/path}, or give the whole value in SIGNALBOX_REDIS_URL",
		"{url: 'redis://h', tls: {cert_file: load_test.go}}": "redis.tls.key_file (default): is empty while cert_file is set",
	} {
		_, err := load(t, "redis: "+yaml+"\n", nil)
		if want == "" {
			require.NoError(t, err, yaml)
			continue
		}
		lines := violations(t, err)
		require.Len(t, lines, 1, "%s: %v", yaml, lines)
		require.Contains(t, lines[0], want)
		require.NotContains(t, lines[0], "hunter2")
	}
}

// A password may be in the URL's own variable, and in a file that the URL refers to; never twice.
func TestPasswordOfRedis(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("p@ss:word\n"), 0o600))
	cfg, err := load(t, "", config.Environment{"SIGNALBOX_REDIS_URL": "redis://:hunter2@h:6379/1"})
	require.NoError(t, err)
	require.Equal(t, "redis://:hunter2@h:6379/1", cfg.Redis.URL.Reveal())
	require.True(t, cfg.Redis.Used())
	require.False(t, cfg.Redis.TLSEnabled())

	cfg, err = load(t, "redis: {url: 'rediss://:${file:"+file+"}@h'}", nil)
	require.NoError(t, err)
	require.Equal(t, "rediss://:p%40ss%3Aword@h", cfg.Redis.URL.Reveal())
	require.True(t, cfg.Redis.TLSEnabled())

	_, err = load(t, "redis: {url: 'redis://:${file:"+file+"}@h', password_file: "+file+"}", nil)
	require.Equal(t, []string{"redis.password_file (signalbox.yaml:1): is given beside a password in redis.url; keep " +
		"one of the two"}, violations(t, err))
}

func TestContradictingDispatchIntervals(t *testing.T) {
	t.Parallel()
	for yaml, want := range map[string]string{
		"dispatch: {renew: 14s}": "dispatch.renew (signalbox.yaml:1): 14s is too " +
			"long for dispatch.ttl (9s)",
		"dispatch: {ttl: 4s}": "dispatch.renew (default): 3s is too long for " +
			"dispatch.ttl (4s)",
		"dispatch: {heartbeat: 20s}": "dispatch.heartbeat (signalbox.yaml:1): 20s is " +
			"not shorter than dispatch.stale_after (20s)",
		"dispatch: {retention: 20s}": "dispatch.retention (signalbox.yaml:1): 20s is " +
			"not longer than dispatch.stale_after (20s)",
		"dispatch: {ttl: 10m}": "dispatch.retention (default): 10m0s is not " +
			"longer than dispatch.ttl (10m0s)",
		"dispatch: {idle: 0s}": "dispatch.idle (signalbox.yaml:1): 0s is too short",
		"dispatch: {check_interval: -1s}": "dispatch.check_interval (signalbox.yaml:1): " +
			"-1s is too short",
		"dispatch: {stale_after: 59s}": "supervisor.interval (default): 1m0s, " +
			"dispatch.stale_after (59s) and supervisor.confirm (2s) add up to 2m1s",
		"supervisor: {interval: 99s}": "supervisor.interval (signalbox.yaml:1): " +
			"1m39s, dispatch.stale_after (20s)",
		"supervisor: {confirm: 1ms}": "supervisor.confirm (signalbox.yaml:1): 1ms is " +
			"too short",
		"supervisor: {max_terminations: 0}": "supervisor.max_terminations " +
			"(signalbox.yaml:1): 0 is too few",
		"supervisor: {legacy_ids: ['dispatcher-*']}":  `supervisor.legacy_ids (signalbox.yaml:1): "dispatcher-*" lacks {project}`,
		"supervisor: {legacy_ids: ['{project}-{x}']}": `supervisor.legacy_ids (signalbox.yaml:1): "{project}-{x}" holds braces that stand for nothing`,
		"events: {max_batch: 10001}": "events.max_batch (signalbox.yaml:1): 10001 is " +
			"too many; give at most 10000",
		"events: {max_batch: 0}": "events.max_batch (signalbox.yaml:1): 0 is too few",
		"events: {max_data_bytes: 17MiB}\napi: {max_request_bytes: 20MiB}": "events.max_data_bytes (signalbox.yaml:1): " +
			"17MiB is over 16MiB",
		"events: {max_data_bytes: 0}": "events.max_data_bytes (signalbox.yaml:1): 0B lets nothing through",
	} {
		_, err := load(t, yaml+"\n", nil)
		lines := violations(t, err)
		require.Len(t, lines, 1, "%s: %v", yaml, lines)
		require.Contains(t, lines[0], want)
	}
	_, err := load(t, "dispatch: {stale_after: 58s}\nsupervisor: {legacy_ids: ['old-{project}-{task_queue}-*']}", nil)
	require.NoError(t, err)
	_, err = load(t, "api: {max_request_bytes: 100KiB}\nruns: {max_input_bytes: 1KiB}\nworkflows: "+
		"{max_definition_bytes: 1KiB}", nil)
	require.Equal(t, []string{"events.max_data_bytes (default): 256KiB is over api.max_request_bytes (100KiB), so such " +
		"an event could never arrive; lower it or raise the other"}, violations(t, err))
}

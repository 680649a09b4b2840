package config_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/config"
)

// load reads a file with the given content, variables and command line.
func load(t *testing.T, yaml string, env config.Environment, args ...string) (*config.Config, error) {
	t.Helper()
	flags := pflag.NewFlagSet("signalbox", pflag.ContinueOnError)
	config.BindFlags(flags)
	if yaml != "" {
		path := filepath.Join(t.TempDir(), "signalbox.yaml")
		require.NoError(t, os.WriteFile(path, []byte(yaml), 0o600))
		args = append(args, "--config", path)
	}
	require.NoError(t, flags.Parse(args))
	return config.Load(config.Options{Flags: flags, Env: env})
}

// A file of each secret that others may read or change is reported by its key, with all other violations; certificates
// are public.
func TestExposedSecretFilesAreReported(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	document := fmt.Sprintf(`listen_tls: {cert_file: %[1]s, key_file: %[1]s}
temporal: {api_key_file: %[1]s, tls: {cert_file: %[1]s, key_file: %[1]s, ca_file: %[1]s}}
redis: {password_file: %[1]s, tls: {enabled: true, cert_file: %[1]s, key_file: %[1]s}}
payloads: {s3: {access_key_file: %[1]s, secret_key_file: %[1]s}}
`, file)
	_, err := load(t, document, nil)
	if err != nil {
		require.NotContains(t, err.Error(), "holds a secret")
	}
	require.NoError(t, os.Chmod(file, 0o644))
	_, err = load(t, document, nil)
	require.Error(t, err)
	var reported []string
	for _, line := range violations(t, err) {
		if strings.Contains(line, "holds a secret and can be read by all users of the machine (mode 0644): run `chmod 600") {
			reported = append(reported, strings.Fields(line)[0])
		}
	}
	require.ElementsMatch(t, []string{
		"listen_tls.key_file", "temporal.api_key_file", "temporal.tls.key_file", "redis.password_file", "redis.tls.key_file",
		"payloads.s3.access_key_file", "payloads.s3.secret_key_file",
	}, reported)
}

// violations returns the lines of err, without the folder of the file.
func violations(t *testing.T, err error) []string {
	t.Helper()
	var found config.Violations
	require.ErrorAs(t, err, &found)
	lines := []string{}
	for _, p := range found {
		if i := strings.LastIndex(p.Source, string(filepath.Separator)); i >= 0 {
			p.Source = p.Source[i+1:]
		}
		lines = append(lines, p.String())
	}
	return lines
}

func TestDefaultsAreValid(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	require.NoError(t, cfg.Validate())
	require.Equal(t, config.Size(512<<10), cfg.Runs.MaxInputBytes)
	require.True(t, cfg.HasRole("api"))
	require.True(t, cfg.HasRole("worker"))
	loaded, err := config.Load(config.Options{})
	require.NoError(t, err)
	require.Equal(t, cfg, loaded)
}

func TestFlagOverVariableOverFileOverDefault(t *testing.T) {
	t.Parallel()
	const yaml = "temporal: {namespace: from-file}\n"
	env := config.Environment{"SIGNALBOX_TEMPORAL_NAMESPACE": "from-variable"}
	tests := []struct {
		name, yaml string
		env        config.Environment
		args       []string
		want       string
	}{
		{"default", "", nil, nil, "default"},
		{"file", yaml, nil, nil, "from-file"},
		{"variable", yaml, env, nil, "from-variable"},
		{"flag", yaml, env, []string{"--temporal-namespace=from-flag"}, "from-flag"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cfg, err := load(t, test.yaml, test.env, test.args...)
			require.NoError(t, err)
			require.Equal(t, test.want, cfg.Temporal.Namespace)
		})
	}
}

func TestEveryKindOfValueFromEverySource(t *testing.T) {
	t.Parallel()
	want := func(t *testing.T, cfg *config.Config, err error) {
		t.Helper()
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, cfg.Projects)
		require.Equal(t, 1500*time.Millisecond, cfg.Runs.StartTimeout)
		require.Equal(t, config.Size(2<<20), cfg.API.MaxRequestBytes)
		require.Equal(t, 7, cfg.Worker.MaxConcurrentActivities)
		require.False(t, cfg.Store.AutoMigrate)
	}
	cfg, err := load(t, "projects: [a, b]\nruns: {start_timeout: 1.5s}\napi: {max_request_bytes: 2MiB}\nworker: "+
		"{max_concurrent_activities: 7}\nstore: {auto_migrate: false}\n", nil)
	want(t, cfg, err)
	cfg, err = load(t, "", config.Environment{
		"SIGNALBOX_PROJECTS": "a, b", "SIGNALBOX_RUNS_START_TIMEOUT": "1.5s", "SIGNALBOX_API_MAX_REQUEST_BYTES": "2MiB",
		"SIGNALBOX_WORKER_MAX_CONCURRENT_ACTIVITIES": "7", "SIGNALBOX_STORE_AUTO_MIGRATE": "false",
	})
	want(t, cfg, err)
	cfg, err = load(t, "", nil, "--projects=a,b", "--runs-start-timeout=1.5s", "--api-max-request-bytes=2097152",
		"--worker-max-concurrent-activities=7", "--store-auto-migrate=false")
	want(t, cfg, err)
}

func TestAllViolationsAtOnceWithPathAndSource(t *testing.T) {
	t.Parallel()
	_, err := load(t, `listen: 0.0.0.0:8080
rolse: [api]
roles: [api, wroker]
temporal:
  adress: x
  namespace: [a]
  tls: {cert_file: /nowhere/cert.pem}
  namespace: b
store: postgres
runs:
  start_timeout: ten
  max_input_bytes: 17MiB
  max_steps: 0
log: {level: inform, format: json}
start_timeout: 1s
`, config.Environment{"SIGNALBOX_WORKER_STOP_TIMEOUT": "soon", "SIGNALBOX_LOG_FORMAT": "xml"}, "--calls-allow-private=10.0.0.0", "--store-driver=postgrse")
	require.Equal(t, []string{
		`rolse (signalbox.yaml:2): is not a key, did you mean "roles"?`,
		`temporal.adress (signalbox.yaml:5): is not a key, did you mean "address"?`,
		`temporal.namespace (signalbox.yaml:6): is a list where a text belongs`,
		`temporal.namespace (signalbox.yaml:8): is set here and in line 6; keep one`,
		`store (signalbox.yaml:9): is not a mapping; write its keys below it, one per line`,
		`runs.start_timeout (signalbox.yaml:11): "ten" is not a duration: write a number with a unit, for example "10s", "500ms" or "2m"`,
		`start_timeout (signalbox.yaml:15): is not a key here, did you mean "runs.start_timeout"?`,
		`worker.stop_timeout (SIGNALBOX_WORKER_STOP_TIMEOUT): "soon" is not a duration: write a number with a unit, for example "10s", "500ms" or "2m"`,
		`temporal.tls.cert_file (signalbox.yaml:7): the file cannot be read: open /nowhere/cert.pem: no such file or directory; check its path and permissions`,
		`listen (signalbox.yaml:1): "0.0.0.0:8080" can be reached from other machines, and with auth.mode none every caller is an administrator; listen on 127.0.0.1 or [::1], or set auth.mode to tokens`,
		`roles (signalbox.yaml:3): "wroker" is not a role, did you mean "worker"?; the roles are api, worker and runner`,
		`temporal.tls.key_file (default): is empty while cert_file is set; a client certificate needs its private key`,
		`store.driver (--store-driver): "postgrse" is not a driver, did you mean "postgres"?; the drivers are sqlite and postgres`,
		`runs.max_input_bytes (signalbox.yaml:12): 17MiB is over 16MiB, the largest value that a run takes; lower it`,
		`runs.max_steps (signalbox.yaml:13): 0 is not between 1 and 100000000`,
		`calls.allow_private (--calls-allow-private): "10.0.0.0" is not a network; write an address and a prefix length, for example 10.20.0.0/16 or 127.0.0.1/32`,
		`log.level (signalbox.yaml:14): "inform" is not a level, did you mean "info"?; the levels are debug, info, warn and error`,
		`log.format (SIGNALBOX_LOG_FORMAT): "xml" is not a format; the formats are json and text`,
		`runs.max_input_bytes (signalbox.yaml:12): 17MiB is over api.max_request_bytes (4MiB), so such an input could never arrive; lower it or raise the other`,
	}, violations(t, err))
}

func TestFilesThatAreNotConfigurations(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ yaml, want string }{
		"broken YAML": {"listen: [\nroles: x\n", "signalbox.yaml:2: is not YAML: did not find expected ',' or ']'"},
		"a list":      {"- a\n", "signalbox.yaml:1: is not a mapping; write its keys below it, one per line"},
		"two documents": {"listen: localhost:1\n---\nlisten: localhost:2\n",
			"signalbox.yaml: holds more than one YAML document; keep the first"},
		"nested list": {"projects: [[a]]\n",
			"projects (signalbox.yaml:1): holds something that is not a plain value; write a list of texts"},
		"far-off key": {"frobnicate: 1\n", "frobnicate (signalbox.yaml:1): is not a key; known here: api, auth, calls, " +
			"dispatch, encryption, events, listen, listen_tls, log, memory_limit, migration, payloads, projects, redis, " +
			"retention, roles, runner, runs, secrets, servers, store, supervisor, telemetry, temporal, webhooks, worker, workflows"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, test.yaml, nil)
			require.Equal(t, []string{test.want}, violations(t, err))
		})
	}
	_, err := load(t, "", config.Environment{"SIGNALBOX_CONFIG": "/nowhere/signalbox.yaml"})
	require.ErrorContains(t, err, "cannot be read")
	require.ErrorContains(t, err, "SIGNALBOX_CONFIG")
	cfg, err := load(t, "# nothing but a comment\n", nil)
	require.NoError(t, err)
	require.Equal(t, config.Default(), cfg)
	cfg, err = load(t, "temporal:\nlisten:\n", nil)
	require.NoError(t, err, "an empty value is the default")
	require.Equal(t, config.Default(), cfg)
}

func TestSecretsComeByReference(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("p@ss:w/rd'\n"), 0o600))
	env := config.Environment{"DB_PASSWORD": "from env", "DB_DSN": "postgres://u:plain@h/d"}
	good := map[string]string{
		"postgres://u:${file:" + file + "}@h/d":       "postgres://u:p%40ss%3Aw%2Frd%27@h/d",
		"postgres://u:${env:DB_PASSWORD}@h/d":         "postgres://u:from%20env@h/d",
		"host=h user=u password=${file:" + file + "}": `host=h user=u password='p@ss:w/rd\''`,
		"${env:DB_DSN}":    "postgres://u:plain@h/d",
		"postgres://u@h/d": "postgres://u@h/d",
	}
	for dsn, want := range good {
		cfg, err := load(t, "", env, "--store-driver=postgres", "--store-dsn="+dsn)
		require.NoError(t, err, dsn)
		require.Equal(t, want, cfg.Store.DSN.Reveal())
		require.NotContains(t, fmt.Sprintf("%v %+v %#v", cfg.Store, cfg, cfg.Store.DSN), "postgres://")
	}
	bad := map[string]string{
		"postgres://u:plain@h/d":         "holds a password in plain text",
		"postgres://h/d?password=plain":  "holds a password in plain text",
		"host=h password=plain":          "holds a password in plain text",
		"postgres://u:${env:NOPE}@h/d":   "${env:NOPE}: the variable is not set",
		"postgres://u:${file:/nope}@h/d": "${file:/nope}: the file cannot be read",
		"postgres://u:${vault:nope}@h/d": "${vault:nope}: is not a reference",
		"some.db":                        "is not a Postgres DSN",
	}
	for dsn, want := range bad {
		_, err := load(t, "", env, "--store-driver=postgres", "--store-dsn="+dsn)
		require.ErrorContains(t, err, "store.dsn (--store-dsn): "+want, dsn)
		require.NotContains(t, err.Error(), "plain@", "the secret itself is not repeated")
	}
	cfg, err := load(t, "", config.Environment{
		"SIGNALBOX_STORE_DSN": "postgres://u:plain@h/d", "SIGNALBOX_STORE_DRIVER": "postgres"})
	require.NoError(t, err, "a variable is a reference of its own")
	require.Equal(t, "postgres://u:plain@h/d", cfg.Store.DSN.Reveal())
	_, err = load(t, "store: {dsn: \"postgres://h/d\"}\n", nil)
	require.ErrorContains(t, err, "is a Postgres DSN while store.driver is sqlite")
}

func TestLayersOverrideDefaultsOnly(t *testing.T) {
	t.Parallel()
	nothing := func(*config.Config) config.Violations { return nil }
	layer := config.Layer{Check: nothing,
		Apply: func(env config.Environment, cfg *config.Config) (map[string]string, error) {
			cfg.Temporal.Address, cfg.Temporal.Namespace = env["A"], "below the file"
			return map[string]string{"temporal.address": "A"}, nil
		}}
	cfg, err := config.Load(config.Options{
		Layers: []config.Layer{layer}, Env: config.Environment{"A": "h:1", "SIGNALBOX_TEMPORAL_NAMESPACE": "above"}})
	require.NoError(t, err)
	require.Equal(t, "h:1", cfg.Temporal.Address)
	require.Equal(t, "above", cfg.Temporal.Namespace)
	_, err = config.Load(config.Options{Layers: []config.Layer{layer}, Env: config.Environment{"A": "nonsense"}})
	require.Equal(t, []string{
		`temporal.address (A): "nonsense" is not host:port: the port is missing; write nonsense:7233`}, violations(t, err))
	broken := config.Layer{Check: nothing, Apply: func(config.Environment, *config.Config) (map[string]string, error) {
		return nil, errors.New("bad profile")
	}}
	_, err = config.Load(config.Options{Layers: []config.Layer{broken}})
	require.Equal(t, []string{"environment: bad profile"}, violations(t, err))
}

// A violation that may heal does not prevent the start, but is reported with the others.
func TestLayersCheckTheResult(t *testing.T) {
	t.Parallel()
	expired := config.Violation{Path: "temporal.tls.cert_file", Message: "expired", Heals: true}
	checking := func(found ...config.Violation) config.Options {
		return config.Options{Env: config.Environment{"SIGNALBOX_LISTEN": "everywhere"}, Layers: []config.Layer{{
			Apply: func(config.Environment, *config.Config) (map[string]string, error) { return nil, nil },
			Check: func(*config.Config) config.Violations { return found },
		}}}
	}
	_, err := config.Load(checking(
		expired, config.Violation{Path: "listen", Message: "again"},
		config.Violation{Source: "elsewhere", Message: "inline"}))
	require.Equal(t, []string{
		`listen (SIGNALBOX_LISTEN): "everywhere" is not host:port: missing port in address; write for example 127.0.0.1:8080`,
		"temporal.tls.cert_file (default): expired",
		"elsewhere: inline",
	}, violations(t, err))

	healing := checking(expired)
	healing.Env = nil
	cfg, err := config.Load(healing)
	require.NoError(t, err)
	require.Equal(t, "temporal.tls.cert_file (default): expired", cfg.Warnings.Error())
}

func TestBounds(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{
		"--api-max-request-bytes=0":                "lets nothing through",
		"--runs-max-input-bytes=0":                 "lets nothing through",
		"--runs-start-timeout=1ms":                 "is too short; give at least 100ms",
		"--calls-timeout=0s":                       "is too short",
		"--secrets-timeout=0s":                     "is too short",
		"--secrets-cache=1h":                       "is over 5m0s",
		"--secrets-env-prefix=1 X":                 "cannot begin a variable",
		"--worker-stop-timeout=-1s":                "is too short",
		"--worker-max-concurrent-workflow-tasks=1": "is too few; give at least 2",
		"--worker-max-concurrent-activities=0":     "is too few",
		"--worker-cache=1MiB":                      "is too little for the runs that are in progress; write at least 16MiB",
		"--worker-max-concurrent-activities=x":     "is not a whole number",
		"--store-auto-migrate=perhaps":             "is neither true nor false",
		"--workflows-max-definition-bytes=5MiB":    "is over api.max_request_bytes",
		"--temporal-namespace=":                    "is empty",
		"--telemetry-service-name=":                "is empty",
		"--telemetry-profile-listen=6060": "is not host:port: missing port in address; write for example " +
			"127.0.0.1:6060",
		"--telemetry-profile-listen=0.0.0.0:6060": "can be reached from other machines, and profiles need no token; " +
			"listen on 127.0.0.1 or [::1]",
		"--telemetry-profile-listen=:6060":         "can be reached from other machines",
		"--store-dsn=":                             "is empty",
		"--auth-mode=token":                        "did you mean \"tokens\"",
		"--api-rate-limit=-1":                      "is too few",
		"--api-burst=0":                            "is too few; give at least 1",
		"--api-public-url=signalbox.example.com":   "write scheme and host",
		"--api-public-url=https://u:p@example.com": "is not an address of pages",
		"--api-max-connections=0":                  "is too few; give at least 1",
		"--roles=":                                 "a process needs a role",
		"--roles=api,api":                          "is named twice",
		"--projects=Shop":                          "is not a project's name",
		"--listen=127.0.0.1:99999":                 "the port is not a number",

		"--temporal-check-interval=-1s":                  "is too short; give at least 100ms",
		"--temporal-check-timeout=1s":                    "is too short: an answer counts as slow from 1s on",
		"--temporal-check-timeout=16s":                   "is over temporal.check_interval (15s)",
		"--temporal-probe-interval=0s":                   "is too short",
		"--temporal-probe-interval=1m":                   "is over temporal.check_interval (15s)",
		"--temporal-rebuild-after=0s":                    "is too short",
		"--temporal-drain-timeout=0s":                    "is too short",
		"--temporal-breaker-failures=0":                  "is too few; give at least 1",
		"--temporal-breaker-interval=10ms":               "is too short; give at least 1s",
		"--runs-answer-within=0s":                        "is too short; give at least 50ms",
		"--runs-answer-within=11s":                       "is over runs.start_timeout (10s)",
		"--runs-queue-when-unavailable-max-runs=0":       "is too few; give at least 1",
		"--runs-queue-when-unavailable-ttl=0s":           "is too short; give at least 1s",
		"--runs-queue-when-unavailable-rate=-1":          "is too few",
		"--runs-queue-when-unavailable-enabled=possibly": "is neither true nor false",
	} {
		_, err := load(t, "", nil, flag)
		name, _, _ := strings.Cut(flag, "=")
		lines := violations(t, err)
		require.Len(t, lines, 1, flag)
		require.Contains(t, lines[0], "("+name+"): ")
		require.Contains(t, lines[0], want)
	}
}

func TestListeningBeyondLoopback(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pem") // the listener reads its content later
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for flags, want := range map[string]string{
		"--auth-session-idle=1m": "auth.session_idle (--auth-session-idle): 1m0s is " +
			"too short; give at least 2m0s",
		"--auth-session-idle=13h":                      "12h0m0s is shorter than session_idle (13h0m0s)",
		"--auth-session-idle=5m --auth-session-max=5m": "",
		"--listen=0.0.0.0:1": "every caller is an administrator; listen on " +
			"127.0.0.1 or [::1], or set auth.mode to tokens",
		"--listen=0.0.0.0:1 --listen-tls-disabled":                                                                "every caller is an administrator",
		"--listen=0.0.0.0:1 --auth-mode=tokens":                                                                   "so tokens would be sent in plain text; give a certificate",
		"--listen=0.0.0.0:1 --auth-mode=tokens --listen-tls-disabled":                                             "",
		"--listen=0.0.0.0:1 --auth-mode=tokens --listen-tls-cert-file=" + file + " --listen-tls-key-file=" + file: "",
		"--auth-mode=tokens": "",
		"--listen-tls-cert-file=" +
			file: "listen_tls.key_file (default): is empty while cert_file is set",
		"--listen-tls-client-ca-file=" + file:                       "is set while cert_file is empty",
		"--listen-tls-disabled --listen-tls-client-ca-file=" + file: "is true beside files",
	} {
		_, err := load(t, "", nil, strings.Fields(flags)...)
		if want == "" {
			require.NoError(t, err, flags)
			continue
		}
		lines := violations(t, err)
		require.Len(t, lines, 1, flags)
		require.Contains(t, lines[0], want, flags)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	env := config.NewEnvironment([]string{"A=1", "B=x=y", "broken"})
	require.Equal(t, config.Environment{"A": "1", "B": "x=y"}, env)
	require.ElementsMatch(t, []string{"A=1", "B=x=y"}, env.Environ())
}

func TestNetworksAreMasked(t *testing.T) {
	t.Parallel()
	calls := config.Calls{AllowPrivate: []string{"10.1.2.3/8", "nonsense", "::1/128"}}
	require.Equal(t, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		calls.Networks())
}

func TestContext(t *testing.T) {
	t.Parallel()
	cfg := &config.Config{Listen: "here"}
	require.Same(t, cfg, config.FromContext(config.WithContext(t.Context(), cfg)))
	require.Equal(t, config.Default(), config.FromContext(t.Context()))
}

func TestUnlistedFlagsAreAccepted(t *testing.T) {
	t.Parallel()
	flags := pflag.NewFlagSet("signalbox", pflag.ContinueOnError)
	config.BindUnlisted(flags)
	require.Contains(t, flags.FlagUsages(), "--config")
	require.NotContains(t, flags.FlagUsages(), "--store-dsn")
	require.NoError(t, flags.Parse([]string{"--store-dsn", "elsewhere.db"}))
	cfg, err := config.Load(config.Options{Flags: flags})
	require.NoError(t, err)
	require.Equal(t, "elsewhere.db", cfg.Store.DSN.Reveal())
}

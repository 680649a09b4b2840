package packaging_test

import (
	"bytes"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// load reads compose.yaml as Docker Compose does, with only these variables set. A warning is a failure.
func load(t *testing.T, variables ...string) *types.Project {
	t.Helper()
	var warnings bytes.Buffer
	logrus.SetOutput(&warnings) // of compose-go; no other test of this package uses it
	options, err := cli.NewProjectOptions([]string{folder + "/compose.yaml"}, cli.WithName("signalbox"),
		cli.WithEnv(variables))
	require.NoError(t, err)
	project, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	require.Empty(t, warnings.String())
	return project
}

// servers are the services that run `signalbox server`.
var servers = []string{"signalbox-1", "signalbox-2"}

// onceOnly are the services that end when their work is done.
var onceOnly = []string{"prometheus-token", "signalbox-grants", "signalbox-migrate", "temporal-namespace",
	"temporal-schema"}

func TestComposeFile(t *testing.T) {
	t.Parallel()
	project := load(t)
	require.ElementsMatch(t, slices.Concat(servers, onceOnly,
		[]string{"alertmanager", "grafana", "postgres", "prometheus", "redis", "temporal"}),
		slices.Collect(maps.Keys(project.Services)))
	for name, service := range project.Services {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkConfinement(t, service)
			checkLife(t, service)
			checkFiles(t, service)
		})
	}
	for name, secret := range project.Secrets {
		assert.True(t, strings.HasPrefix(secret.File, mustAbs(t, folder+"/secrets")), name)
	}
}

// Only what has authentication and can have TLS is published beyond loopback.
func TestBindConcernsOnlyTheServers(t *testing.T) {
	t.Parallel()
	for name, service := range load(t, "SIGNALBOX_BIND=0.0.0.0").Services {
		want := "127.0.0.1"
		if slices.Contains(servers, name) {
			want = "0.0.0.0"
		}
		for _, port := range service.Ports {
			assert.Equal(t, want, port.HostIP, name)
		}
	}
}

// checkConfinement: no root, no capability, nothing writable but volumes and temporary files, bounded memory, ports on
// loopback.
func checkConfinement(t *testing.T, s types.ServiceConfig) {
	t.Helper()
	assert.True(t, s.ReadOnly, "read_only")
	assert.Regexp(t, `^[1-9]\d*:\d+$`, s.User, "a user that is not root, by number")
	assert.Equal(t, []string{"ALL"}, s.CapDrop)
	assert.Empty(t, s.CapAdd)
	assert.False(t, s.Privileged)
	assert.Contains(t, s.SecurityOpt, "no-new-privileges:true")
	assert.Positive(t, s.MemLimit)
	assert.Positive(t, s.PidsLimit)
	assert.Equal(t, "5", s.Logging.Options["max-file"], "logs are bounded")
	assert.Regexp(t, `^[a-z/-]+:(v?\d+\.\d+\.\d+(-\w+)?|17\.\d+|local)$`, s.Image, "a version is pinned")
	for _, port := range s.Ports {
		assert.Equal(t, "127.0.0.1", port.HostIP)
	}
	for key, value := range s.Environment {
		assert.NotRegexp(t, `(?i)(password|secret|token|_pwd)$`, key, "secrets are files")
		if value != nil && strings.HasSuffix(key, "GOMEMLIMIT") {
			limit, err := parseSize(*value)
			require.NoError(t, err)
			assert.Less(t, limit, int64(s.MemLimit), "GOMEMLIMIT leaves a margin")
			assert.Greater(t, limit, int64(s.MemLimit)*3/4)
		}
	}
}

// checkLife: what runs is restarted, checked and stopped in peace, and no start waits for Temporal but Temporal's own.
func checkLife(t *testing.T, s types.ServiceConfig) {
	t.Helper()
	if slices.Contains(onceOnly, s.Name) {
		assert.Equal(t, types.RestartPolicyOnFailure, s.Restart)
	} else {
		assert.Equal(t, types.RestartPolicyUnlessStopped, s.Restart)
		require.NotNil(t, s.HealthCheck)
		assert.Less(t, time.Duration(*s.HealthCheck.Timeout), time.Minute)
		assert.GreaterOrEqual(t, time.Duration(*s.StopGracePeriod), 20*time.Second)
	}
	for on := range s.DependsOn {
		if strings.HasPrefix(s.Name, "temporal") {
			assert.Contains(t, []string{"postgres", "temporal", "temporal-schema"}, on)
		} else {
			assert.Contains(t, []string{"postgres", "signalbox-migrate", "signalbox-grants"}, on, "%s starts without Temporal",
				s.Name)
		}
	}
	if slices.Contains(servers, s.Name) {
		// worker.stop_timeout and the margin of the server's own stop.
		assert.Greater(t, time.Duration(*s.StopGracePeriod), 25*time.Second)
	}
}

// checkFiles: each file or folder that is mounted is in the repository, and is mounted read-only.
func checkFiles(t *testing.T, s types.ServiceConfig) {
	t.Helper()
	for _, volume := range s.Volumes {
		if volume.Type != types.VolumeTypeBind {
			continue
		}
		assert.True(t, volume.ReadOnly, volume.Target)
		info, err := os.Stat(volume.Source)
		if assert.NoError(t, err) {
			assert.Equal(t, filepath.Ext(volume.Target) == "", info.IsDir(), volume.Source)
		}
	}
}

// Every variable has a default, so that the file is complete without an .env.
func TestComposeVariablesHaveDefaults(t *testing.T) {
	t.Parallel()
	text := strings.ReplaceAll(read(t, folder+"/compose.yaml"), "$$", "") // an escaped dollar
	variables := regexp.MustCompile(`\$\{[^}]*\}`).FindAllString(text, -1)
	require.Greater(t, len(variables), 15)
	for _, variable := range variables {
		assert.Regexp(t, `^\$\{[A-Z0-9_]+:-[^}]+\}$`, variable)
	}
}

// docker-compose 1.29 has a schema of its own, which knows less than Compose 2.
func TestComposeFileIsValidForCompose1(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("docker-compose")
	if err != nil {
		t.Skip("docker-compose is missing: its schema is not checked")
	}
	cmd := exec.CommandContext(t.Context(), program, "-f", mustAbs(t, folder+"/compose.yaml"), "config", "--quiet")
	cmd.Env = platform.Environment(t)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Empty(t, string(out))
}

// The names in the configuration files are those of the services.
func TestComposeFilesAgree(t *testing.T) {
	t.Parallel()
	project := load(t)
	for _, file := range []string{"signalbox.yaml", "../prometheus/prometheus.yaml", "temporal/schema.sh"} {
		for _, match := range regexp.MustCompile(`([a-z]+(?:-\d)?):(\d{4})\b`).FindAllStringSubmatch(read(t, folder+"/"+file),
			-1) {
			if net.ParseIP(match[1]) == nil {
				assert.Contains(t, project.Services, match[1], "%s: %s", file, match[0])
			}
		}
	}
	token := project.Services["prometheus-token"].Command
	_, name := filepath.Split(token[len(token)-1])
	assert.Contains(t, read(t, folder+"/../prometheus/prometheus.yaml"), "{credentials_file: /run/signalbox/"+name+"}")
	for _, secret := range regexp.MustCompile(`/run/secrets/(\w+)`).
		FindAllStringSubmatch(read(t, folder+"/signalbox.yaml"), -1) {
		for _, server := range servers {
			assert.True(t, slices.ContainsFunc(project.Services[server].Secrets, func(s types.ServiceSecretConfig) bool {
				return s.Source == secret[1]
			}), secret[1])
		}
	}
	names := read(t, folder+"/setup.sh")
	for secret := range project.Secrets {
		assert.Contains(t, names, secret, "setup.sh generates each secret")
	}
}

// setup.sh generates secrets that other users cannot reach, and keeps those that exist.
func TestSetup(t *testing.T) {
	t.Parallel()
	secrets := setup(t)
	info, err := os.Stat(secrets)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	before := contents(t, secrets)
	require.NotEmpty(t, before["redis_admin_password"])
	require.Len(t, before, len(load(t).Secrets)+1,
		"no container has the password of Redis' administrator, which people use")
	seen := map[string]string{}
	for name, text := range before {
		require.NotEmpty(t, text, name)
		require.Empty(t, seen[text], "%s and %s are the same", name, seen[text])
		seen[text] = name
	}
	run(t, folder+"/setup.sh", secrets)
	require.Equal(t, before, contents(t, secrets))
	again := contents(t, setup(t))
	for name := range before {
		require.NotEqual(t, before[name], again[name], "%s is generated", name)
	}
}

// A folder that exists is closed to other users before anything is written into it. What no container reads is closed
// by itself, too.
func TestSetupClosesAnOpenFolder(t *testing.T) {
	t.Parallel()
	secrets := filepath.Join(t.TempDir(), "secrets")
	require.NoError(t, os.Mkdir(secrets, 0o755))
	require.NoError(t, os.Chmod(secrets, 0o777)) //nolint:gosec // of the test
	run(t, "sh", "-c", "umask 0; exec "+folder+"/setup.sh "+secrets)
	info, err := os.Stat(secrets)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	for name := range contents(t, secrets) {
		info, err := os.Stat(filepath.Join(secrets, name))
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o022, "%s can be changed by others", name)
		if name == "redis_admin_password" {
			require.Zero(t, info.Mode().Perm()&0o077, name)
		}
	}
}

func TestScriptsAreValid(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"setup.sh", "postgres/init.sh", "temporal/schema.sh", "temporal/namespace.sh"} {
		run(t, "sh", "-n", folder+"/"+script)
	}
}

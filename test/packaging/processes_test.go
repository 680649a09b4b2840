package packaging_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// processes is the topology of compose.yaml as processes: its configuration files with other addresses and folders.
type processes struct {
	folder, secrets string
	addresses       map[string]string // host:port in the files, and here
	store           platform.Store
	temporal        *platform.Temporal
	token           string
	config          string // of the last server
}

// program returns the path of a program, or skips the test.
func program(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skipf("%s is missing; `make setup` installs it", names[0])
	return ""
}

// prepareProcesses writes the files. Nothing runs yet.
func prepareProcesses(t *testing.T) *processes {
	t.Helper()
	if !platform.HasPostgres() {
		t.Skipf("%s is not set", platform.PostgresVariable)
	}
	secrets := setup(t)
	for name := range contents(t, secrets) { // without containers, no mount is read-only
		require.NoError(t, os.Chmod(filepath.Join(secrets, name), 0o600))
	}
	p := &processes{folder: t.TempDir(), secrets: secrets, store: platform.Postgres(t),
		temporal: platform.ReserveTemporal(t), addresses: map[string]string{}}
	for _, name := range []string{
		"redis:6379", "signalbox-1:8080", "signalbox-2:8080", "prometheus:9090", "alertmanager:9093"} {
		p.addresses[name] = platform.Address(platform.FreePort(t))
	}
	p.addresses["temporal:7233"] = p.temporal.Address
	return p
}

// file writes a configuration file of deploy with the addresses and folders of here, after further replacements, each
// of which must occur.
func (p *processes) file(t *testing.T, source string, replacements map[string]string) string {
	t.Helper()
	text := read(t, root+"/deploy/"+source)
	for old, replacement := range replacements {
		require.Contains(t, text, old, source)
		text = strings.ReplaceAll(text, old, replacement)
	}
	for name, address := range p.addresses {
		text = strings.ReplaceAll(text, name, address)
	}
	text = strings.NewReplacer("/run/secrets", p.secrets, "/run/signalbox", p.folder).Replace(text)
	path := filepath.Join(t.TempDir(), filepath.Base(source))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (p *processes) startRedis(t *testing.T) {
	t.Helper()
	_, port, _ := strings.Cut(p.addresses["redis:6379"], ":")
	data := t.TempDir()
	config := p.file(t, "compose/redis/redis.conf",
		map[string]string{"port 6379": "port " + port, "dir /data": "dir " + data, "bind 0.0.0.0": "bind 127.0.0.1"})
	t.Cleanup(platform.StartProcess(t, "redis", program(t, "redis-server"), nil, []string{config}).Kill)
}

// server starts one of the two servers with the configuration of both.
func (p *processes) server(t *testing.T, name string) *platform.Server {
	t.Helper()
	p.config = p.file(t, "compose/signalbox.yaml", map[string]string{
		"listen: 0.0.0.0:8080": "listen: " + p.addresses[name+":8080"],
		// The roles and grants are the subject of test/privilege.
		"postgres://signalbox:${file:/run/secrets/signalbox_db_password}@postgres:5432/signalbox?sslmode=disable": p.store.DSN,
		"auto_migrate: false": "auto_migrate: true",
	})
	run := platform.Run(t, platform.Command{
		Binary: platform.ServerBinary(t), Args: []string{"check-config", "--config", p.config}})
	require.Zero(t, run.Code, run.String())
	process := platform.StartProcess(t, name, platform.ServerBinary(t), nil, []string{"server", "--config", p.config})
	return platform.AttachServer(process, p.addresses[name+":8080"])
}

func (p *processes) startPrometheus(t *testing.T) {
	t.Helper()
	config := p.file(t, "prometheus/prometheus.yaml",
		map[string]string{"rules.yaml": mustAbs(t, root+"/deploy/prometheus/rules.yaml")})
	run(t, program(t, "promtool"), "check", "config", config)
	address := p.addresses["prometheus:9090"]
	t.Cleanup(platform.StartProcess(t, "prometheus", program(t, "prometheus"), nil,
		[]string{"--config.file=" + config, "--storage.tsdb.path=" + t.TempDir(), "--web.listen-address=" + address}).Kill)

	alertmanager := p.file(t, "prometheus/alertmanager.yaml", nil)
	run(t, program(t, "amtool"), "check-config", alertmanager)
	t.Cleanup(platform.StartProcess(t, "alertmanager", program(t, "prometheus-alertmanager", "alertmanager"), nil,
		[]string{
			"--config.file=" + alertmanager, "--storage.path=" + t.TempDir(), "--web.listen-address=" +
				p.addresses["alertmanager:9093"], "--cluster.listen-address=",
		}).Kill)
}

// cli runs a command of the server's program with the configuration file of the servers and the token.
func (p *processes) cli(t *testing.T, server string, args ...string) platform.Result {
	t.Helper()
	return platform.Run(t, platform.Command{
		Binary: platform.ServerBinary(t), Args: args,
		Env: []string{
			"SIGNALBOX_TOKEN=" + p.token, "SIGNALBOX_ADDRESS=" + p.addresses[server+":8080"],
			"SIGNALBOX_CONFIG=" + p.config,
		},
	})
}

func (p *processes) finishes(t *testing.T, server, name string) {
	t.Helper()
	r := p.cli(t, server, "run", "start", "hello", "--input", `{"name": "`+name+`"}`, "--wait", "-o", "json")
	require.Zero(t, r.Code, r.String())
	require.Contains(t, r.Stdout, "Hello, "+name+"!")
}

// The servers start before Temporal and Redis, a run that is started by hand completes, both servers are restarted in
// turn, and Prometheus reads both with the token that the stack creates.
func TestProcesses(t *testing.T) {
	t.Parallel()
	p := prepareProcesses(t)
	up := map[string]*platform.Server{}
	for _, name := range servers {
		up[name] = p.server(t, name)
	}
	up[servers[0]].AwaitAPI(t)
	token := load(t).Services["prometheus-token"].Command
	file := filepath.Join(p.folder, "prometheus.token")
	for range 2 { // it can be repeated
		r := p.cli(t, servers[0], append(token[:len(token)-1:len(token)-1], file)...)
		require.Zero(t, r.Code, r.String())
	}
	p.startPrometheus(t)
	r := p.cli(t, servers[0], "token", "create", "--bootstrap", "--name", "ada")
	require.Zero(t, r.Code, r.String())
	p.token = strings.TrimSpace(r.Stdout)
	r = p.cli(t, servers[0], "workflow", "publish", mustAbs(t, root+"/examples/workflows/hello.yaml"))
	require.Zero(t, r.Code, r.String())
	refused := p.cli(t, servers[0], "run", "start", "hello", "--timeout", "10s")
	require.Equal(t, platform.ExitUnavailable, refused.Code, refused.String())

	p.startRedis(t)
	p.temporal = p.temporal.Restart(t)
	for _, name := range servers {
		up[name].AwaitReady(t)
	}
	p.finishes(t, servers[0], "Ada")
	for i, name := range servers {
		up[name].Terminate()
		code, ended := up[name].WaitFor(soon)
		require.True(t, ended)
		require.Zero(t, code)
		p.finishes(t, servers[1-i], "without-"+name)
		up[name] = p.server(t, name)
		up[name].AwaitReady(t)
		p.finishes(t, name, "after-"+name)
	}
	var runs []struct{ Status string }
	require.NoError(t, json.Unmarshal([]byte(p.cli(t, servers[0], "run", "list", "-o", "json").Stdout), &runs))
	require.Len(t, runs, 5)
	awaitScraped(t, p.addresses["prometheus:9090"])
}

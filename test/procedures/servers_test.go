package procedures_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// firstServers goes from an empty database through the phases of the rollout and the production checklist, and loses
// Redis.
func firstServers(t *testing.T, g *guide) {
	i := newInstallation(t, postgres.Get(t))
	s := g.section(t, "Rollout")
	require.NoError(t, os.Symlink(programs.Get(t)+"/examples", filepath.Join(i.folder, "examples")))
	i.do(t, s, "signalbox check-config")
	i.do(t, s, "signalbox migrate up")
	i.do(t, s, `psql "$OWNER_DSN"`)
	i.start(t)
	i.signIn(t)
	i.until(t, s, `connected`, "signalbox system status")

	i.do(t, s, "signalbox workflow publish")
	require.Contains(t, i.do(t, s, "signalbox run start"), "Hello, world!")
	i.api.Kill()
	i.worker.Kill()
	i.start(t) // as a service manager would
	i.until(t, s, i.ownedBy(t), "signalbox dispatcher list")

	i.do(t, s, "signalbox project create", "NAME", "shop")
	i.do(t, s, "signalbox quota set", "NAME", "shop")
	order := i.publish(t, "shop", document("order", "  - pause: {wait: {hours: 1}}\n"))
	first, second := i.run(t, "shop", order, "waiting"), i.run(t, "shop", order, "waiting")
	// a worker begins to serve the new project within seconds
	i.until(t, s, "no problems", "signalbox problem list", "NAME", "shop")
	require.Regexp(t, `waiting\s+2`, i.do(t, s, "signalbox run count", "NAME", "shop"))
	i.do(t, s, "signalbox workflow stop", "WORKFLOW", order, "NAME", "shop", "TEXT", "wrong")
	for _, id := range []string{first, second} {
		i.await(t, "shop", id, "canceled")
	}
	i.shell(t, "signalbox workflow unpause --project shop "+order)
	open := i.run(t, "shop", order, "waiting")
	i.do(t, s, "signalbox workflow pause", "WORKFLOW", order, "NAME", "shop", "TEXT", "wrong")
	i.await(t, "shop", open, "waiting")
	i.do(t, s, "signalbox system maintenance on", "TEXT", "wrong")
	require.Contains(t, i.shell(t, "signalbox run start examples/hello 2>&1 || true"), "maintenance")
	i.shell(t, "signalbox system maintenance off")

	s = g.section(t, "Production checklist")
	i.do(t, s, "signalbox check-config")
	i.do(t, s, "signalbox system status")
	require.Contains(t, i.do(t, s, "signalbox worker list"), i.id(t, i.worker))
	require.Contains(t, i.do(t, s, "REDISCLI_AUTH="), "noeviction")
	i.do(t, s, "signalbox check-config")
	i.do(t, s, "signalbox quota show")
	i.do(t, s, "signalbox dispatcher list")

	s = g.section(t, "Redis is lost")
	i.redis.Kill()
	i.startRedis(t)
	i.until(t, s, i.ownedBy(t), "signalbox dispatcher list")
}

// ownedBy returns a pattern for dispatcher list: the worker owns the dispatcher of the project default.
func (i *installation) ownedBy(t *testing.T) string {
	t.Helper()
	return `default .*` + i.id(t, i.worker)
}

// id returns the ID of a server as lists show it.
func (i *installation) id(t *testing.T, s *platform.Server) string {
	t.Helper()
	return strings.TrimSpace(i.shell(t, "signalbox version --server --jq .server.serverId --address "+s.Address))
}

// document returns the source of a workflow of the namespace shop.
func document(name, tasks string, head ...string) string {
	return "document: {dsl: '1.0.3', namespace: shop, name: " + name + ", version: '1.0.0'}\n" + strings.Join(head, "") +
		"do:\n" + tasks
}

// publish publishes a document in a project, and returns the name of the workflow.
func (i *installation) publish(t *testing.T, project, source string) string {
	t.Helper()
	i.secret(t, "workflow.yaml", source)
	return strings.TrimSpace(i.shell(t, "signalbox workflow publish workflow.yaml -o name --project "+project))
}

// run starts a run, waits until it has the status, and returns its ID.
func (i *installation) run(t *testing.T, project, workflow, status string) string {
	t.Helper()
	id := strings.TrimSpace(i.shell(t, "signalbox run start "+workflow+" -o name --project "+project))
	i.await(t, project, id, status)
	return id
}

// await waits until a run has the status.
func (i *installation) await(t *testing.T, project, id, status string) {
	t.Helper()
	i.awaitAnswer(t, "/v1/projects/"+project+"/runs/"+id, `"status": ?"`+status+`"`)
}

// awaitAnswer waits until an answer of the API matches. It starts no process, as long waits would do many times.
func (i *installation) awaitAnswer(t *testing.T, path, pattern string) {
	t.Helper()
	platform.Eventually(t, soon, func() string {
		if _, body, err := i.call(t, http.MethodGet, path); err != nil || !regexp.MustCompile(pattern).MatchString(body) {
			return fmt.Sprintf("%s does not answer %s: %v\n%s", path, pattern, err, body)
		}
		return ""
	})
}

// call makes a request to the API with the token of the commands.
func (i *installation) call(t *testing.T, method, path string) (int, string, error) {
	t.Helper()
	header := http.Header{"Content-Type": {"application/json"}}
	if token := i.variable("SIGNALBOX_TOKEN"); token != "" { // a platform without tokens has none
		header.Set("Authorization", "Bearer "+token)
	}
	body := ""
	if method == http.MethodPost {
		body = "{}"
	}
	return i.api.Do(t.Context(), method, path, header, strings.NewReader(body))
}

// previousVariable is the environment variable with the path of the previous release's server.
const previousVariable = "SIGNALBOX_PREVIOUS_BIN"

// upgrade replaces the servers of the previous release by those of this one, while a run is open.
func upgrade(t *testing.T, g *guide) {
	previous := os.Getenv(previousVariable)
	if previous == "" {
		t.Skipf("%s is not set; scripts/previous.sh reports why, or builds it", previousVariable)
	}
	i := newInstallation(t, postgres.Get(t))
	// Its servers are on loopback without tokens, and own the tables.
	former := func(role string) *platform.Server {
		t.Helper()
		address := i.variable("SIGNALBOX_ADDRESS")
		if role == platform.Worker {
			address = platform.Address(platform.FreePort(t))
		}
		env := slices.Concat(i.settings, []string{
			"PGPASSFILE=" + i.variable("PGPASSFILE"), "SIGNALBOX_REDIS_URL=redis://" +
				platform.Address(i.port), "SIGNALBOX_REDIS_USERNAME=signalbox",
			"SIGNALBOX_REDIS_PASSWORD_FILE=" + i.folder + "/redis-password", "SIGNALBOX_ENCRYPTION_KEYS=test=" + i.folder +
				"/sealing-key",
		})
		return platform.AttachServer(platform.StartProcess(t, "previous "+role, previous, env, []string{
			"server", "--roles", role, "--listen", address, "--temporal-address", i.temporal.Address, "--temporal-namespace",
			i.namespace,
			"--store-driver", "postgres", "--store-dsn", i.variable("OWNER_DSN"),
		}), address)
	}
	i.api, i.worker = former(platform.API), former(platform.Worker)
	i.api.AwaitAPI(t)
	i.worker.AwaitReady(t)
	open := i.run(t, "default",
		i.publish(t, "default", document("asks", "  - ask: {listen: {to: {one: {with: {type: go}}}}}\n")), "waiting")

	s := g.section(t, "Before")
	i.do(t, s, "signalbox version --server")
	i.do(t, s, "signalbox migrate status")
	s = g.section(t, "Rolling: no interruption")
	i.do(t, s, "signalbox migrate up")
	i.do(t, s, `psql "$OWNER_DSN"`)
	i.await(t, "default", open, "waiting") // the old servers work on the new schema
	i.worker = i.replace(t, i.worker, platform.Worker)
	i.until(t, s, "", "curl", "WORKER:8080", i.worker.Address)
	i.worker.AwaitReady(t)
	i.api = i.replace(t, i.api, platform.API)
	i.api.AwaitAPI(t)
	i.signIn(t)
	version := strings.TrimSpace(i.shell(t, "signalbox version --jq .version"))
	workers := i.until(t, s, i.id(t, i.worker), "signalbox worker list")
	require.Contains(t, workers, version)
	i.until(t, s, "connected", "signalbox system status")
	i.do(t, s, "signalbox problem list")

	s = g.section(t, "With maintenance")
	i.do(t, s, "signalbox system maintenance on")
	require.Regexp(t, `waiting\s+1`, i.do(t, s, "signalbox run count"))
	i.do(t, s, "signalbox system maintenance off")
	i.shell(t, "signalbox event send --type go --source /shop")
	i.await(t, "default", open, "completed")
}

// replace stops a server and starts one of this release in its place.
func (i *installation) replace(t *testing.T, former *platform.Server, role string) *platform.Server {
	t.Helper()
	former.Terminate()
	code, ended := former.WaitFor(soon)
	require.True(t, ended)
	require.Zero(t, code, former.Output())
	return i.launch(t, role)
}

// move takes a project from one installation to another one.
func move(t *testing.T, g *guide) {
	from, to := operating(t, postgres.Get(t)), operating(t, postgres.Get(t))
	from.shell(t, "signalbox project create shop")
	asks := document("asks", "  - ask: {listen: {to: {one: {with: {type: go}}}}}\n")
	name := from.publish(t, "shop", asks)
	waits, ends := from.run(t, "shop", name, "waiting"), from.run(t, "shop", name, "waiting")

	s := g.section(t, "Moving a project")
	to.do(t, s, "signalbox project create", "NAME", "shop")
	source := from.do(t, s, "signalbox workflow show", "NAME", name, "P", "shop")
	require.Equal(t, asks, source)
	require.Equal(t, name, to.publish(t, "shop", source))
	from.do(t, s, "signalbox workflow pause", "NAME", name, "P", "shop")
	require.Contains(t, from.shell(t, "signalbox run start --project shop "+name+" 2>&1 || true"), "paused")
	require.Regexp(t, `waiting\s+2`, from.do(t, s, "signalbox run count", "P", "shop"))
	from.do(t, s, "signalbox batch start", "P", "shop")
	for _, id := range []string{waits, ends} {
		from.await(t, "shop", id, "canceled")
	}
	from.do(t, s, "signalbox run export", "P", "shop")
	require.Equal(t, "2", strings.TrimSpace(from.shell(t, "grep -c canceled runs.jsonl")))
	require.Contains(t, from.do(t, s, "signalbox audit export", "P", "shop"), "run.cancel")
	exported := from.do(t, s, "signalbox run export", "ID", waits, "P", "shop")
	require.Contains(t, exported, waits)
	again := to.run(t, "shop", name, "waiting")
	to.shell(t, "signalbox event send --type go --source /shop --project shop")
	to.await(t, "shop", again, "completed")
}

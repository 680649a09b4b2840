package packaging_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// imagesVariable names a file with the variables of compose.yaml for the images, as scripts/compose-images.sh prints
// them.
const imagesVariable = "SIGNALBOX_COMPOSE_IMAGES"

// patience is for a start of all containers on a busy machine.
const patience = platform.Patience

// stack is compose.yaml in containers, with its own volumes, secrets and ports.
type stack struct {
	command []string // docker compose, or docker-compose
	env     []string
	ports   map[string]int // of each server
	token   string
}

// prepareStack prepares a stack, which is removed at the end of t. Nothing runs yet.
func prepareStack(t *testing.T) *stack {
	t.Helper()
	images := os.Getenv(imagesVariable)
	if images == "" {
		t.Skipf("%s is not set: compose.yaml is not run in containers; `make compose-test` does that, as root with Docker "+
			"on Debian", imagesVariable)
	}
	s := &stack{command: composeCommand(t), ports: map[string]int{}}
	variables := map[string]string{
		"SIGNALBOX_SECRETS": setup(t), "COMPOSE_PROJECT_NAME": strings.ToLower(t.Name()) + strconv.Itoa(os.Getpid())}
	for i, server := range servers {
		s.ports[server] = platform.FreePort(t)
		variables[fmt.Sprintf("SIGNALBOX_%d_PORT", i+1)] = strconv.Itoa(s.ports[server])
	}
	s.ports["prometheus"], s.ports["alertmanager"] = platform.FreePort(t), platform.FreePort(t)
	variables["PROMETHEUS_PORT"], variables["ALERTMANAGER_PORT"] = strconv.Itoa(s.ports["prometheus"]),
		strconv.Itoa(s.ports["alertmanager"])
	s.env = platform.Environment(t, strings.Fields(read(t, images))...)
	for name, value := range variables {
		s.env = append(s.env, name+"="+value)
	}
	if host := os.Getenv("DOCKER_HOST"); host != "" {
		s.env = append(s.env, "DOCKER_HOST="+host)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s", s.try("ps"))
			t.Logf("%s", s.try("logs", "--tail=15", "--no-color"))
		}
		t.Logf("%s", s.try("down", "--volumes", "--timeout=5"))
	})
	return s
}

func composeCommand(t *testing.T) []string {
	t.Helper()
	if exec.CommandContext(t.Context(), "docker", "compose", "version").Run() == nil {
		return []string{"docker", "compose"}
	}
	path, err := exec.LookPath("docker-compose")
	require.NoError(t, err, "neither docker compose nor docker-compose is installed")
	return []string{path}
}

// try runs a command of Compose and returns its output, also when it fails.
func (s *stack) try(args ...string) string {
	out, err := s.cmd(args...).CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s\n%s: %v", out, args[0], err)
	}
	return string(out)
}

func (s *stack) cmd(args ...string) *exec.Cmd {
	all := slices.Concat(s.command[1:], []string{"-f", folder + "/compose.yaml"}, args)
	cmd := exec.Command(s.command[0], all...)
	cmd.Env = s.env
	return cmd
}

// compose runs a command of Compose to its successful end.
func (s *stack) compose(t *testing.T, args ...string) string {
	t.Helper()
	cmd := s.cmd(args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(t, err, "%s\n%s%s", cmd, out, errs.String())
	return string(out)
}

// up starts services, without those that they depend on unless Compose adds them.
func (s *stack) up(t *testing.T, services ...string) {
	t.Helper()
	s.compose(t, append([]string{"up", "--detach"}, services...)...)
}

// awaitHealthy waits until the containers of the services are healthy.
func (s *stack) awaitHealthy(t *testing.T, services ...string) {
	t.Helper()
	for _, service := range services {
		platform.Eventually(t, patience, func() string {
			id := strings.TrimSpace(s.try("ps", "-q", service))
			cmd := exec.CommandContext(t.Context(), "docker", "inspect", "--format", "{{.State.Health.Status}}", id)
			cmd.Env = s.env
			out, err := cmd.CombinedOutput()
			if state := strings.TrimSpace(string(out)); err != nil || state != "healthy" {
				return fmt.Sprintf("%s is %s", service, state)
			}
			return ""
		})
	}
}

// bootstrap creates the first token of an administrator, as docs/install.md says, and publishes hello.
func (s *stack) bootstrap(t *testing.T) {
	t.Helper()
	s.token = strings.TrimSpace(
		s.compose(t, "exec", "-T", servers[0], "/signalbox-server", "token", "create", "--bootstrap", "--name", "ada"))
	require.Regexp(t, `^sbx_`, s.token)
	// the first requests may meet a database that is still busy with the start
	platform.Eventually(t, patience, func() string {
		if r := s.cliResult(t, servers[0], "workflow", "publish",
			mustAbs(t, root+"/examples/workflows/hello.yaml")); r.Code != 0 {
			return r.String()
		}
		return ""
	})
}

// cli runs a command against a server, with the token.
func (s *stack) cli(t *testing.T, server string, args ...string) string {
	t.Helper()
	r := s.cliResult(t, server, args...)
	require.Zero(t, r.Code, r.String())
	return r.Stdout
}

func (s *stack) cliResult(t *testing.T, server string, args ...string) platform.Result {
	t.Helper()
	return platform.Run(t, platform.Command{
		Binary: platform.ServerBinary(t), Args: args, Limit: patience,
		Env: []string{"SIGNALBOX_TOKEN=" + s.token, "SIGNALBOX_ADDRESS=" + platform.Address(s.ports[server])},
	})
}

// finishes starts a run by hand and waits for its result.
func (s *stack) finishes(t *testing.T, server, name string) {
	t.Helper()
	var ended struct {
		Status string         `json:"status"`
		Output map[string]any `json:"output"`
	}
	out := s.cli(t, server, "run", "start", "hello", "--input", `{"name": "`+name+`"}`, "--request-id", name, "--wait",
		"-o", "json")
	require.NoError(t, json.Unmarshal([]byte(out), &ended), out)
	require.Equal(t, "completed", ended.Status)
	require.Equal(t, map[string]any{"greeting": "Hello, " + name + "!"}, ended.Output)
}

// eventuallyFinishes is finishes for a platform that may refuse the start for a while.
func (s *stack) eventuallyFinishes(t *testing.T, server, name string) time.Duration {
	t.Helper()
	began := time.Now()
	platform.Eventually(t, patience, func() string {
		r := s.cliResult(t, server, "run", "start", "hello", "--input", `{"name": "`+name+`"}`, "--request-id", name,
			"--timeout", "10s")
		if r.Code != 0 {
			return r.String()
		}
		return ""
	})
	s.finishes(t, server, name)
	return time.Since(began)
}

// completed returns how many runs there are, after a check that all of them are completed.
func (s *stack) completed(t *testing.T) int {
	t.Helper()
	var runs []struct {
		ID, Status string
	}
	out := s.cli(t, servers[1], "run", "list", "--limit", "0", "-o", "json")
	require.NoError(t, json.Unmarshal([]byte(out), &runs), out)
	for _, one := range runs {
		assert.Equal(t, "completed", one.Status, one.ID)
	}
	return len(runs)
}

// all are the services without Grafana, of which Debian has no package.
func all() []string {
	return slices.Concat(servers,
		[]string{"signalbox-migrate", "signalbox-grants", "prometheus-token", "prometheus", "alertmanager", "postgres",
			"redis", "temporal-schema", "temporal", "temporal-namespace"})
}

// From empty volumes: a run that is started by hand completes, on both servers, and Prometheus reads both with its
// token. Then each service is restarted in turn, and both servers one after the other.
func TestContainers(t *testing.T) {
	t.Parallel()
	s := prepareStack(t)
	t.Log("the service grafana is left out: Debian has no package of it, and no image can be pulled")
	began := time.Now()
	s.up(t, all()...)
	s.awaitHealthy(t, "signalbox-1", "signalbox-2", "postgres", "redis", "temporal", "prometheus", "alertmanager")
	s.bootstrap(t)
	s.eventuallyFinishes(t, servers[0], "Ada")
	s.finishes(t, servers[1], "Bob")
	t.Logf("a run completed %s after `up` with empty volumes", time.Since(began).Round(time.Second))
	awaitScraped(t, platform.Address(s.ports["prometheus"]))

	runs := 2
	for _, service := range []string{
		"redis", "temporal", "postgres", "signalbox-1", "signalbox-2", "prometheus", "alertmanager"} {
		s.compose(t, "restart", "--timeout", "40", service)
		took := s.eventuallyFinishes(t, servers[runs%2], "after-"+service)
		runs++
		t.Logf("a run completed %s after the restart of %s", took.Round(100*time.Millisecond), service)
		s.awaitHealthy(t, service)
		require.Equal(t, runs, s.completed(t), "nothing is lost")
	}

	// One server after the other, while runs are started at the other one.
	for i, service := range servers {
		s.compose(t, "stop", service)
		s.finishes(t, servers[1-i], "without-"+service)
		s.compose(t, "start", service)
		s.awaitHealthy(t, service)
		runs++
	}
	require.Equal(t, runs, s.completed(t))

	// What ran once is no obstacle to a repeated start.
	s.compose(t, "stop")
	s.up(t, all()...)
	s.awaitHealthy(t, servers...)
	s.eventuallyFinishes(t, servers[0], "again")
	require.Equal(t, runs+1, s.completed(t))
	awaitScraped(t, platform.Address(s.ports["prometheus"]))
}

// awaitScraped waits until Prometheus has read the metrics of both servers with its token.
func awaitScraped(t *testing.T, prometheus string) {
	t.Helper()
	platform.Eventually(t, patience, func() string {
		var answer struct {
			Data struct {
				Result []struct {
					Value [2]any `json:"value"`
				} `json:"result"`
			} `json:"data"`
		}
		text, wrong := get(t, "http://"+prometheus+"/api/v1/query?query=sum(up)")
		if wrong != "" {
			return wrong
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Data.Result) != 1 {
			return cmp.Or(text, "no answer")
		}
		if up := fmt.Sprint(answer.Data.Result[0].Value[1]); up != "2" {
			return up + " servers are up"
		}
		return ""
	})
}

// Temporal comes 60 seconds after the servers: they wait for it and lose nothing.
func TestContainersWithoutTemporalAtFirst(t *testing.T) {
	t.Parallel()
	s := prepareStack(t)
	began := time.Now()
	s.up(t, "signalbox-1", "signalbox-2", "redis", "prometheus-token")
	s.awaitHealthy(t, servers...)
	s.bootstrap(t)
	refused := s.cliResult(t, servers[0], "run", "start", "hello", "--input", `{"name": "early"}`, "--request-id", "early",
		"--timeout", "10s")
	require.Equal(t, platform.ExitUnavailable, refused.Code, refused.String())
	require.Contains(t, refused.Stderr, "ENGINE_UNAVAILABLE")
	remaining := 60*time.Second - time.Since(began)
	platform.Throughout(t, max(remaining, 0), func() string {
		if state := s.cliResult(t, servers[0], "system", "health"); state.Code != 0 {
			return state.String()
		}
		return ""
	})
	late := time.Now()
	s.up(t, "temporal", "temporal-namespace")
	s.eventuallyFinishes(t, servers[0], "early")
	t.Logf("a run completed %s after `up` of Temporal, 60 s late", time.Since(late).Round(time.Second))
	s.eventuallyFinishes(t, servers[1], "later") // each server connects by itself
	require.Equal(t, 2, s.completed(t))
}

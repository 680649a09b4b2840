package integration_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/sandbox/container/enginetest"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// programsOf starts a server that permits all programs, and a runner with settings.
func programsOf(t *testing.T, settings ...string) (*platform.Temporal, *platform.Server, *platform.Server) {
	t.Helper()
	temporal := platform.StartTemporal(t)
	s := platform.StartServer(t, platform.ServerOptions{
		Temporal: temporal.Address, Store: platform.SQLite(t), Env: []string{"SIGNALBOX_RUNNER_KINDS=script,shell,container"},
	})
	return temporal, s, runnerOf(t, temporal.Address, settings...)
}

// needBubblewrap skips a test where commands cannot be isolated.
func needBubblewrap(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("bubblewrap is not installed; on Debian: apt-get install bubblewrap")
	}
}

// Shell commands and scripts in Python are executed with their arguments, environment and input, and reach neither the
// runner nor Temporal.
func TestRunnerExecutesCommands(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	temporal, s, _ := programsOf(t)
	host, port, _ := strings.Cut(temporal.Address, ":")
	run := s.Await(t, s.Start(t, s.Publish(t, platform.Document("commands", fmt.Sprintf(`
  - shell:
      run:
        shell:
          command: 'echo "$1 $NAME $(cat) $(env | grep -c HIDDEN) $(ls /home /root /etc/passwd 2>/dev/null | wc -l)"; exit 3'
          arguments: ['a b']
          environment: {NAME: value}
          stdin: in
        return: all
      export: {as: '{shell: .}'}
  - python:
      run:
        script:
          language: python
          code: |
            import json, socket, sys
            reached = "reached"
            try:
                socket.create_connection(("%s", %s), 2)
            except OSError as e:
                reached = e.strerror
            print(json.dumps({"sum": sum(json.load(sys.stdin)), "temporal": reached}))
          stdin: '${ [1, 2, 3] }'
      output: {as: '$context + {python: fromjson}'}`, host, port))), `{}`).GetId(), time.Minute, "completed")
	require.JSONEq(t, `{"shell": {"code": 3, "stdout": "a b value in 0 0\n", "stderr": ""},
		"python": {"sum": 6, "temporal": "Connection refused"}}`, run.GetOutput().GetJson())
}

// Programs that use too much of something end with an error, or their processes get one, and the runner goes on.
func TestRunnerBoundsPrograms(t *testing.T) {
	t.Parallel()
	const refuses = `run: {container: {image: %s}}`
	for isolation, prepare := range map[string]func(t *testing.T) (settings []string, further []bomb){
		"bubblewrap": func(t *testing.T) ([]string, []bomb) {
			t.Helper()
			needBubblewrap(t)
			return nil, nil
		},
		"container": func(t *testing.T) ([]string, []bomb) {
			t.Helper()
			return []string{"SIGNALBOX_RUNNER_CONTAINERS_SOCKET=" + enginetest.Start(t),
					"SIGNALBOX_RUNNER_CONTAINERS_SHELL_IMAGE=" + enginetest.Image,
					"SIGNALBOX_RUNNER_CONTAINERS_IMAGES=signalbox/test:2"},
				[]bomb{
					{"no-image", fmt.Sprintf(refuses, "'signalbox/test:2'"), "1m", 400, "cannot be pulled"},
					{"other-image", fmt.Sprintf(refuses, "alpine"), "1m", 400, "is not among runner.containers.images"},
				}
		},
	} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			settings, further := prepare(t)
			_, s, runner := programsOf(t, append(settings, "SIGNALBOX_RUNNER_MAX_PROGRAM_MEMORY=64MiB",
				"SIGNALBOX_RUNNER_MAX_PROGRAM_DISK=4MiB", "SIGNALBOX_RUNNER_MAX_OUTPUT_BYTES=4KiB")...)
			for _, b := range append(bombs(), further...) {
				run := s.Await(t, s.Start(t, s.Publish(t, platform.Document("bomb-"+b.name, fmt.Sprintf(`
  - bomb:
      timeout: {after: '%s'}
      %s`, strings.ToUpper("PT"+b.timeout), b.task))), `{}`).GetId(), 2*time.Minute, "failed")
				require.Equal(t, b.status, run.GetError().GetStatus(), "%s: %v", b.name, run.GetError())
				require.Contains(t, run.GetError().GetDetail(), b.detail, b.name)
			}
			status, _, err := runner.Get(t.Context(), "/readyz")
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, status)
			run := s.Await(t, s.Start(t, s.Publish(t, platform.Document("after", `
  - after: {run: {shell: {command: echo still here}}}`)), `{}`).GetId(), time.Minute, "completed")
			require.JSONEq(t, `"still here\n"`, run.GetOutput().GetJson())
		})
	}
}

// bomb is a program that fails its run.
type bomb struct {
	name, task, timeout string
	status              int32
	detail              string // a part of the error's
}

// bombs are shell commands that use too much of something, or attempt what they may not.
func bombs() []bomb {
	list := []bomb{
		{"forks", `while :; do sleep 100 & done`, "1m", 500, "fork"},
		{"disk", `dd if=/dev/zero of=/tmp/a bs=64k & wait $!; dd if=/dev/zero of=/tmp/b bs=64k; exit 7`, "1m", 500, "No space left"},
		{"memory", `x=xxxxxxxx; while :; do x=$x$x; done`, "1m", 500, "memory"},
		{"output", `while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxx; done`, "1m", 500, "printed more than 4096 bytes"},
		{"signals", `trap '' TERM INT HUP; sleep 1000 & while :; do sleep 1000; done`, "2s", 408, ""},
		{"kernel", `echo x >/proc/sys/kernel/core_pattern`, "1m", 500, "core_pattern"},
	}
	for i := range list {
		list[i].task = fmt.Sprintf("run: {shell: {command: %q}}", list[i].task)
	}
	return list
}

// commandsWith returns how many processes have a text in their command line.
func commandsWith(t *testing.T, text string) int {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	found := 0
	for _, path := range paths {
		line, err := os.ReadFile(path)
		if err != nil {
			require.True(t, errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH), "%v", err)
		}
		if strings.Contains(string(line), text) {
			found++
		}
	}
	return found
}

// Containers, and shell commands in containers, are executed, canceled and removed.
func TestRunnerExecutesContainers(t *testing.T) {
	t.Parallel()
	socket := enginetest.Start(t)
	temporal, s, _ := programsOf(t, "SIGNALBOX_RUNNER_CONTAINERS_SOCKET="+socket, "SIGNALBOX_RUNNER_CONTAINERS_IMAGES=signalbox/test",
		"SIGNALBOX_RUNNER_CONTAINERS_SHELL_IMAGE="+enginetest.Image, "SIGNALBOX_RUNNER_CONTAINERS_NETWORK=guarded")
	run := s.Await(t, s.Start(t, s.Publish(t, platform.Document("containers", fmt.Sprintf(`
  - container:
      run:
        container:
          image: signalbox/test:1
          command: 'echo "$1 $NAME $(cat) $(id -u)"'
          arguments: ['a b']
          environment: {NAME: value}
          stdin: in
      export: {as: '{container: .}'}
  - shell:
      run:
        shell:
          command: |
            printf 'CONNECT %%s HTTP/1.1\r\nHost: x\r\n\r\n' "$1" | nc 127.0.0.1 3128 | grep -o 'is one of the platform itself'
            nc -w 2 ${1%%%%:*} ${1#*:} </dev/null 2>&1 | grep -o 'Connection refused'
          arguments: ['%s']
      output: {as: '$context + {shell: .}'}`, temporal.Address))), `{}`).GetId(), time.Minute, "completed")
	require.JSONEq(t, `{"container": "a b value in 65534\n",
		"shell": "is one of the platform itself\nConnection refused\n"}`, run.GetOutput().GetJson())

	refused := s.Await(t, s.Start(t, s.Publish(t, platform.Document("refused", `
  - refused: {run: {container: {image: alpine}}}`)), `{}`).GetId(), time.Minute, "failed")
	require.EqualValues(t, 400, refused.GetError().GetStatus())
	require.Contains(t, refused.GetError().GetDetail(), "docker.io/library/alpine:latest is not among runner.containers.images")

	canceled := s.Start(t, s.Publish(t, platform.Document("canceled", `
  - canceled: {run: {container: {image: signalbox/test:1, command: 'trap "" TERM; while :; do sleep 1000; done'}}}`)), `{}`).GetId()
	containers := func(want string) {
		platform.Eventually(t, time.Minute, func() string {
			if _, list := enginetest.Do(t, socket, http.MethodGet, "/containers/json?all=1", nil); !strings.Contains(list, want) ||
				want == "" && strings.TrimSpace(list) != "[]" {
				return "the containers are " + list
			}
			return ""
		})
	}
	containers(`"running"`)
	require.Zero(t, s.CLI(t, "run", "cancel", canceled).Code)
	s.Await(t, canceled, time.Minute, "canceled")
	containers("")
}

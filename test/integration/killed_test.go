package integration_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/sandbox/container/enginetest"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// unfinished is a task whose process is ended in the middle.
type unfinished struct {
	name, body string // the body of the task; the run's input has the member "unique"
	// sleeps is how many processes of the task have the text in their command line.
	sleeps int
	// again: the task is executed again when its process is lost, and completes then.
	again bool
}

// commandTasks are tasks with programs that sleep and ignore signals.
func commandTasks() []unfinished {
	return []unfinished{
		{"shell", `run: {shell: {command: 'trap "" TERM; touch $HOME/file; setsid sleep $1 & sleep $1', arguments: ['${ .unique }']}}`,
			2, false},
		{"python", `run: {script: {language: python, arguments: ['${ .unique }'], code: 'import subprocess, sys; ` +
			`open("file", "w"); subprocess.Popen(["sleep", sys.argv[1]]); subprocess.run(["sleep", sys.argv[1]])'}}`, 2, false},
	}
}

func containerTask() unfinished {
	return unfinished{"container", `run: {container: {image: signalbox/test:1, command: 'trap "" TERM; sleep $1 & sleep $1', ` +
		`arguments: ['${ .unique }']}}`, 2, false}
}

// functionTasks call the example's function that takes a quarter of a second for each piece.
func functionTasks() []unfinished {
	const call = `call: go
      with: {program: pricing, function: reserve, version: 1.0.0, input: {article: pen, quantity: %d}, idempotent: %t}`
	return []unfinished{
		{"function", fmt.Sprintf(call, 4000, false), 0, false}, {"idempotent", fmt.Sprintf(call, 80, true), 0, true},
	}
}

func scriptTask() unfinished {
	return unfinished{"javascript", "run: {script: {language: js, code: 'console.log(\"begun\"); " + busy(15_000) +
		"; console.log(\"done\")'}}", 0, true}
}

// pending is a run of an unfinished task.
type pending struct {
	unfinished
	id, unique string
}

// scene is a platform with a runner and a program of Go functions.
type scene struct {
	*platform.Server
	temporal  *platform.Temporal
	settings  []string
	socket    string // of the engine of containers; empty: there is none
	runner    *platform.Server
	program   func() *platform.Process
	functions *platform.Process
	tasks     []unfinished
}

// kindsOfTasks are the tasks of each kind, and what they need.
func kindsOfTasks() map[string]func(t *testing.T, s *scene) {
	return map[string]func(t *testing.T, s *scene){
		"commands": func(t *testing.T, s *scene) {
			t.Helper()
			needBubblewrap(t)
			s.tasks = commandTasks()
			s.temporal, s.Server, s.runner = programsOf(t)
		},
		"containers": func(t *testing.T, s *scene) {
			t.Helper()
			s.socket = enginetest.Start(t)
			s.settings = []string{"SIGNALBOX_RUNNER_CONTAINERS_SOCKET=" + s.socket,
				"SIGNALBOX_RUNNER_CONTAINERS_IMAGES=signalbox/test"}
			s.tasks = []unfinished{containerTask()}
			s.temporal, s.Server, s.runner = programsOf(t, s.settings...)
		},
		"scripts": func(t *testing.T, s *scene) {
			t.Helper()
			s.tasks = []unfinished{scriptTask()}
			s.temporal, s.Server, s.runner = programsOf(t)
		},
		"functions": func(t *testing.T, s *scene) {
			t.Helper()
			s.tasks = functionTasks()
			s.temporal, s.Server, s.runner = programsOf(t)
			_, key, _ := strings.Cut(platform.WithKeys(t), "=")
			binary := platform.BuildExample(t, "gofunctions")
			s.program = func() *platform.Process {
				return platform.StartProcess(t, "pricing", binary, nil, []string{"-temporal", s.temporal.Address, "-key", key})
			}
			s.functions = s.program()
		},
	}
}

// begin starts a run of each task, and returns when all of them are in the middle.
func (s *scene) begin(t *testing.T, round int, header string) []pending {
	t.Helper()
	var runs []pending
	for i, task := range s.tasks {
		p := pending{unfinished: task, unique: fmt.Sprintf("%d.%d", 4000+10*round+i, os.Getpid())}
		workflow := s.Publish(t, platform.Document("killed-"+task.name+fmt.Sprint(len(header)),
			"  - task:\n      "+header+task.body+"\n"))
		p.id = s.Start(t, workflow, fmt.Sprintf(`{"unique": %q}`, p.unique)).GetId()
		runs = append(runs, p)
	}
	for _, p := range runs {
		platform.Eventually(t, 2*time.Minute, func() string {
			switch {
			case p.sleeps > 0:
				if n := commandsWith(t, "sleep\x00"+p.unique); n < p.sleeps {
					return fmt.Sprintf("%s: %d processes sleep", p.name, n)
				}
			case p.name == "javascript":
				return without(s.CLI(t, "run", "logs", p.id).Stdout, "begun")
			default:
				return without(s.functions.Output(), "key="+p.id)
			}
			return ""
		})
	}
	return runs
}

// leavesNothing waits until nothing is left of runs whose programs a runner with this process ID executed.
func (s *scene) leavesNothing(t *testing.T, runner int, runs []pending) {
	t.Helper()
	platform.Eventually(t, time.Minute, func() string {
		for _, p := range runs {
			if n := commandsWith(t, p.unique); n > 0 && p.sleeps > 0 {
				return fmt.Sprintf("%s: %d processes are left", p.name, n)
			}
		}
		if list := filesOfPrograms(runner); len(list) > 0 {
			return fmt.Sprintf("files and control groups are left: %v", list)
		}
		if s.socket == "" {
			return ""
		}
		if _, list := enginetest.Do(t, s.socket, http.MethodGet, "/containers/json?all=1", nil); strings.TrimSpace(list) != "[]" {
			return "containers are left: " + list
		}
		return ""
	})
}

// filesOfPrograms returns the folders and control groups of the programs of a runner.
func filesOfPrograms(runner int) []string {
	pattern := fmt.Sprintf("signalbox-program-%d-", runner)
	list, _ := filepath.Glob(filepath.Join(os.TempDir(), pattern+"*")) // the pattern is valid
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(filepath.Base(path), pattern) {
			list = append(list, path)
		}
		return nil // what cannot be read ended meanwhile
	})
	return list
}

// Processes of every kind of program and of Go functions are killed in the middle, again and again: the run of a task
// that may have had effects fails, one that may be repeated completes, and nothing is left.
func TestKilledProcessesOfTasksLeaveNothing(t *testing.T) {
	t.Parallel()
	for kind, prepare := range kindsOfTasks() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := &scene{}
			prepare(t, s)
			rounds := promise.Trials(2, 20)
			for round := range rounds {
				runs := s.begin(t, round, "")
				killed := s.runner.PID()
				if s.runner.Kill(); s.functions != nil {
					s.functions.Kill()
					s.functions = s.program()
				}
				s.runner = runnerOf(t, s.temporal.Address, s.settings...)
				s.leavesNothing(t, killed, runs)
				for _, p := range runs {
					s.endsAsDocumented(t, p)
				}
			}
			for _, task := range s.tasks {
				ends := "504 Outcome unknown"
				if task.again {
					ends = "executed again"
				}
				promise.Record(t, promise.Figure{
					Promise: "programs", What: "process killed in a task, " + task.name + ": " + ends + ", nothing left", Aim: "all",
					Trials: rounds, Figure: fmt.Sprintf("%d of %d", rounds, rounds),
				})
			}
		})
	}
}

// endsAsDocumented waits for the end of a run whose process was killed.
func (s *scene) endsAsDocumented(t *testing.T, p pending) {
	t.Helper()
	if p.again {
		s.Await(t, p.id, 3*time.Minute, "completed")
		require.Len(t, s.Steps(t, p.id)[0].GetAttempts(), 2, p.name)
		if p.name == "javascript" {
			require.Equal(t, "begun\n", s.CLI(t, "run", "logs", p.id, "1", "--attempt", "1").Stdout, "of its last heartbeat")
			require.Equal(t, "begun\ndone\n", s.CLI(t, "run", "logs", p.id, "1", "--attempt", "2").Stdout)
		}
		return
	}
	failed := s.Await(t, p.id, 3*time.Minute, "failed")
	require.EqualValues(t, 504, failed.GetError().GetStatus(), p.name)
	require.Equal(t, "Outcome unknown", failed.GetError().GetTitle(), p.name)
}

// Canceled programs and those that take too long leave nothing while their runner goes on.
func TestCanceledAndLateProgramsLeaveNothing(t *testing.T) {
	t.Parallel()
	for kind, prepare := range kindsOfTasks() {
		if kind == "functions" || kind == "scripts" {
			continue // they have no processes of their own
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := &scene{}
			prepare(t, s)
			rounds := promise.Trials(1, 20)
			for round := range rounds {
				late := s.begin(t, 2*round, "timeout: {after: {seconds: 15}}\n      ")
				canceled := s.begin(t, 2*round+1, "")
				for _, p := range canceled {
					require.Zero(t, s.CLI(t, "run", "cancel", p.id).Code)
				}
				for _, p := range canceled {
					s.Await(t, p.id, 2*time.Minute, "canceled")
				}
				for _, p := range late {
					failed := s.Await(t, p.id, 2*time.Minute, "failed")
					require.EqualValues(t, http.StatusRequestTimeout, failed.GetError().GetStatus(), p.name)
				}
				s.leavesNothing(t, s.runner.PID(), append(late, canceled...))
			}
			for _, task := range s.tasks {
				promise.Record(t, promise.Figure{
					Promise: "programs", What: "task canceled, and ended by its timeout, " + task.name + ": nothing left", Aim: "all",
					Trials: 2 * rounds, Figure: fmt.Sprintf("%d of %d", 2*rounds, 2*rounds),
				})
			}
			status, _, err := s.runner.Get(t.Context(), "/readyz")
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, status)
		})
	}
}

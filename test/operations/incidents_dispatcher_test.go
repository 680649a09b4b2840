package operations_test

import (
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/succession"
)

const (
	// dispatcherID is that of the project default, on every host.
	dispatcherID = "dispatcher-default-signalbox-default"
	dispatching  = `default.*(routing|parked)`
)

// workerIncidents are those of workers that are not there.
func workerIncidents() map[string]incident {
	return map[string]incident{
		"the only worker stopped": {
			short: true,
			parts: parts{workers: 1},
			breaks: func(t *testing.T, w *watched) {
				w.faulted = time.Now()
				w.stop(t, 0)
				w.publishEvents(t)
			},
			repairs: func(t *testing.T, w *watched) { w.restart(t, 0) },
			alerts: []expected{{
				name: "NoPollers", severity: "page", sees: []string{"stopped"}, verifies: []string{"alive"},
			}},
			silent: []string{"DispatcherMissing", "InboxLag"},
			also:   []string{"ServerUnreachable"},
		},
		"the only worker of a project stopped": {
			breaks: func(t *testing.T, w *watched) {
				w.restrict(t)
				w.faulted = time.Now()
				w.stop(t, 1)
			},
			repairs: func(t *testing.T, w *watched) { w.restart(t, 1, "--projects", side) },
			alerts: []expected{{
				name: "ProjectWithoutWorkers", severity: "page", sees: []string{"no_workers|no worker"}, verifies: []string{side},
			}},
			silent: []string{"NoPollers"},
			also:   []string{"ServerUnreachable"},
		},
		"nine workers killed": {
			parts: parts{workers: 1},
			breaks: func(t *testing.T, w *watched) {
				w.publishEvents(t)
				var others []*platform.Server
				for range 9 {
					others = append(others, w.launch(t, 0))
				}
				for _, each := range others {
					each.AwaitReady(t)
				}
				w.waitForRegistered(t, 10)
				w.faulted = time.Now()
				for _, each := range others {
					each.Kill()
				}
			},
			alerts: []expected{{
				name: "WorkerEvictionsHigh", severity: "ticket", sees: []string{"worker.evict"}, verifies: []string{"alive"},
			}},
		},
	}
}

// dispatcherIncidents are those of ownership.
func dispatcherIncidents() map[string]incident {
	return map[string]incident{
		"its ID taken by a foreign workflow": {
			short: true,
			breaks: func(t *testing.T, w *watched) {
				w.plant(t, dispatcherID, "elsewhere", map[string]any{
					"project": "default-signalbox", "task_queue": "default", "owner": "somebody", "epoch": 7, "interpreter": 1,
				})
			},
			repairs: func(t *testing.T, w *watched) {
				require.NoError(t, w.client.TerminateWorkflow(t.Context(), dispatcherID, "",
					"uses the ID of a Signalbox dispatcher"))
			},
			alerts: []expected{{
				name: "DispatcherForeign", severity: "page", sees: []string{`default.*foreign`}, verifies: []string{dispatching},
			}},
			silent: []string{"DispatcherMissing"},
		},
		"a dispatcher under an unknown ID": {
			short: true,
			breaks: func(t *testing.T, w *watched) {
				w.names["ID"] = "router-of-another-program"
				w.plant(t, w.names["ID"], "signalbox-default", nil)
			},
			repairs: func(t *testing.T, w *watched) {
				require.NoError(t, w.client.TerminateWorkflow(t.Context(), w.names["ID"], "",
					"a dispatcher on the task queue of a Signalbox project"))
			},
			alerts: []expected{{
				name: "DispatcherForeign", severity: "page", sees: []string{"foreign dispatcher on its task " +
					"queue.*router-of-another-program"}, verifies: []string{dispatching},
			}},
		},
		"a second dispatcher of an older program, which cannot be ended": {
			parts: parts{frontend: true, args: []string{"--supervisor-legacy-ids", "dispatcher-{project}-host-*"}},
			breaks: func(t *testing.T, w *watched) {
				w.frontend.Fail("TerminateWorkflowExecution", serviceerror.NewPermissionDenied("not allowed", ""))
				w.plant(t, "dispatcher-default-host-a-4711", "signalbox-default", map[string]any{
					"project": "default", "task_queue": "signalbox-default", "owner": "host-a", "epoch": 3, "interpreter": 1,
				})
				w.faulted = time.Now()
			},
			repairs: func(t *testing.T, w *watched) {
				w.frontend.Clear()
				w.fix(t, "DispatcherDuplicate", "signalbox dispatcher reconcile")
			},
			alerts: []expected{
				{name: "DispatcherDuplicate", severity: "page", sees: []string{"dispatcher-default-host-a-4711"},
					verifies: []string{"routing|parked"}},
				{name: "DispatcherStale", severity: "page", sees: []string{"dispatcher-default-host-a-4711"},
					verifies: []string{"no dispatchers|nothing"}},
			},
			also: []string{"TerminateErrors", "ProblemsUnacknowledged"},
		},
		"Temporal refuses new dispatchers": {
			parts: parts{frontend: true},
			breaks: func(t *testing.T, w *watched) {
				w.faulted = time.Now()
				w.frontend.Fail("StartWorkflowExecution", serviceerror.NewPermissionDenied("not allowed", ""))
				for n := range w.workers {
					w.stop(t, n)
				}
				require.NoError(t, w.client.TerminateWorkflow(t.Context(), dispatcherID, "", "a person did so"))
				for n := range w.workers {
					w.restart(t, n)
				}
			},
			repairs: func(_ *testing.T, w *watched) { w.frontend.Clear() },
			alerts: []expected{{
				name: "DispatcherMissing", severity: "page", sees: []string{`default.*(missing|stale|unknown)`},
				verifies: []string{"routing|parked"},
			}},
		},
		"Redis frozen while the owner crashes": {
			breaks: func(t *testing.T, w *watched) {
				n := w.waitForOwner(t)
				w.faulted = time.Now()
				w.redis.Freeze()
				t.Cleanup(w.redis.Thaw)
				w.workers[n].Kill()
				platform.Throughout(t, 40*time.Second, func() string { return "" })
				w.redis.Thaw()
				w.crashed = n
			},
			repairs: func(t *testing.T, w *watched) { w.restart(t, w.crashed) },
			alerts: []expected{{
				name: "TakeoverSlow", severity: "ticket", sees: []string{"dispatcher.change_owner"},
				verifies: []string{"routing|parked"},
			}},
			also: []string{"LeasesUnavailable"},
		},
		"Temporal's lists fail": {
			parts: parts{frontend: true},
			breaks: func(t *testing.T, w *watched) {
				w.startRuns(t, time.Second)
				w.faulted = time.Now()
				// An internal error, since with UNAVAILABLE in most answers Temporal as a whole is limited, and that silences the
				// alert.
				w.frontend.Fail("ListWorkflowExecutions", serviceerror.NewInternal("visibility store"))
			},
			repairs: func(_ *testing.T, w *watched) { w.frontend.Clear() },
			alerts: []expected{{
				name: "SupervisorErrors", severity: "ticket",
				sees:     []string{"did not list the open dispatchers: visibility store", `\): connected for`},
				verifies: []string{"nothing to do"},
			}},
			also: []string{"ProblemsUnacknowledged"}, // the states of dispatchers are not known
		},
	}
}

// terminationIncidents are those in which a dispatcher that should be replaced cannot be ended.
func terminationIncidents() map[string]incident {
	return map[string]incident{
		"Temporal refuses terminations": {
			parts: parts{frontend: true, workers: 1},
			breaks: func(t *testing.T, w *watched) {
				w.publishEvents(t)
				w.frontend.Fail("TerminateWorkflowExecution", serviceerror.NewPermissionDenied("not allowed", ""))
				w.faulted = time.Now()
				w.plant(t, dispatcherID, "signalbox-default", nil)
			},
			repairs: func(_ *testing.T, w *watched) { w.frontend.Clear() },
			alerts: []expected{
				{name: "TerminateErrors", severity: "ticket", sees: []string{"stale"}, verifies: []string{"nothing to do"}},
				{name: "DispatcherMissing", severity: "page", sees: []string{`default.*(missing|stale|unknown)`},
					verifies: []string{"routing|parked"}},
			},
			silent: []string{"InboxLag"},
			also:   []string{"ProblemsUnacknowledged"},
		},
	}
}

// side is a second project.
const side = "side"

// restrict makes the second project, which worker 1 serves alone.
func (w *watched) restrict(t *testing.T) {
	t.Helper()
	_, err := w.Projects.CreateProject(t.Context(), connect.NewRequest(&signalboxv1.CreateProjectRequest{Name: side}))
	require.NoError(t, err)
	for n, project := range []string{platform.DefaultProject, side} {
		w.stop(t, n)
		w.restart(t, n, "--projects", project)
	}
	w.names["NAME"] = side
}

// plant starts a workflow of the type of dispatchers, in place of one that has this ID.
func (w *watched) plant(t *testing.T, id, queue string, memo map[string]any) {
	t.Helper()
	_, err := w.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: id, TaskQueue: queue, Memo: memo, WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING,
	}, succession.WorkflowType)
	require.NoError(t, err)
}

// waitForRegistered waits until the dispatcher has this number of workers.
func (w *watched) waitForRegistered(t *testing.T, count int) {
	t.Helper()
	platform.Eventually(t, patience, func() string {
		d, err := w.dispatcher(t)
		switch {
		case err != nil:
			return err.Error()
		case len(d.GetWorkers()) != count:
			return d.String()
		}
		return ""
	})
}

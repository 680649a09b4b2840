package integration_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/database"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// installation is a platform that is backed up under load and restored.
type installation struct {
	*environment

	listens string // a workflow that waits for the event go
	twice   string // a workflow that waits for the event step and then for go
	short   string // a workflow of 50 ms

	mu   sync.Mutex
	load []string // IDs of the runs that the load has started
}

// dump backs up the database.
func (i *installation) dump(t *testing.T) string {
	t.Helper()
	return database.BackUp(t, i.store)
}

// copyTemporal backs up Temporal's database as it is at one moment.
func (i *installation) copyTemporal(t *testing.T) string {
	t.Helper()
	return database.CopySQLite(t, i.temporal.File)
}

// startLoad starts short runs, one after another, until the returned function is called.
func (i *installation) startLoad(t *testing.T) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if r, err := i.TryStart(t.Context(), i.short, ""); err == nil {
				i.mu.Lock()
				i.load = append(i.load, r.GetId())
				i.mu.Unlock()
			}
		}
	})
	return sync.OnceFunc(func() {
		close(done)
		group.Wait()
	})
}

// open starts runs of a workflow that waits for an event.
func (i *installation) open(t *testing.T, workflow string, n int) (ids []string) {
	t.Helper()
	for range n {
		id := i.Start(t, workflow, "").GetId()
		i.Await(t, id, soon, "waiting")
		ids = append(ids, id)
	}
	return ids
}

// listensFor waits until a run waits for events of a type.
func (i *installation) listensFor(t *testing.T, id, event string) {
	t.Helper()
	platform.Eventually(t, 2*agreed, func() string {
		if r := i.CLI(t, "run", "waits", id); !strings.Contains(r.Stdout, event) {
			return fmt.Sprintf("run %s does not listen for %s: %s", id, event, r)
		}
		return ""
	})
}

// history is what happened around two backups.
type history struct {
	before            []string // open at both backups
	canceled          string   // open at the first backup, canceled before the second one
	between           []string // started between the backups, open at the second one
	stepped           string   // open at both backups; it waits for another event at the second one
	done              string   // started and completed between them
	after             string   // started after both
	first, second     string   // files
	firstIsOfDatabase bool
}

// backUp backs up one part, and the other one a moment later, under load. Then both end like in a loss of power.
func (i *installation) backUp(t *testing.T, databaseFirst bool) history {
	t.Helper()
	stop := i.startLoad(t)
	defer stop()
	h := history{firstIsOfDatabase: databaseFirst}
	open := i.open(t, i.listens, 3)
	h.before, h.canceled = open[:2], open[2]
	h.stepped = i.open(t, i.twice, 1)[0]
	parts := []func(*testing.T) string{i.dump, i.copyTemporal}
	if !databaseFirst {
		slices.Reverse(parts)
	}
	h.first = parts[0](t)
	_, err := i.Control(t.Context(), "cancel", h.canceled, "between the backups")
	require.NoError(t, err)
	i.Await(t, h.canceled, soon, "canceled")
	h.between = i.open(t, i.listens, 2)
	sendTogether(t, i.Server, "step", 1)
	i.listensFor(t, h.stepped, "go")
	h.done = i.Start(t, i.short, "").GetId()
	i.Await(t, h.done, soon, "completed")
	h.second = parts[1](t)
	h.after = i.open(t, i.listens, 1)[0]
	stop()
	i.Kill()
	i.temporal.Kill()
	return h
}

// restore restores both backups into empty databases, starts Temporal and then a server with an empty Redis and with
// variables.
func (i *installation) restore(t *testing.T, h history, env ...string) {
	t.Helper()
	dump, temporal := h.first, h.second
	if !h.firstIsOfDatabase {
		dump, temporal = temporal, dump
	}
	store := database.Restore(t, i.store.Driver, dump)
	if h.firstIsOfDatabase {
		// as if the backup were ten minutes old
		execSQL(t, store, "UPDATE runs_cluster SET compared_at = compared_at - 600000000")
	}
	i.temporal.Replace(t, temporal)
	running := i.temporal.Restart(t)
	i.environment = &environment{
		Server: platform.StartServer(t, platform.ServerOptions{Temporal: running.Address, Store: store, Env: env}),
		store:  store, temporal: running, client: platform.DialTemporal(t, running.Address),
	}
	awaitConnected(t, i.Server)
	require.Equal(t, platform.ExitOK, i.CLI(t, "system", "reconcile").Code)
}

// held requires that the restore was found: no new runs start until the check is complete and an administrator ends the
// maintenance.
func (i *installation) held(t *testing.T) {
	t.Helper()
	var check platform.Result
	platform.Eventually(t, 2*agreed, func() string {
		if check = i.CLI(t, "restore", "check", "--fix", "--yes"); check.Code != platform.ExitOK {
			return check.String()
		}
		return ""
	})
	require.Contains(t, check.Stdout, "the backup is of ", check)
	require.Contains(t, i.CLI(t, "system", "maintenance").Stdout, "the database was restored to its state of ")
	_, err := i.TryStart(t.Context(), i.short, "")
	require.ErrorContains(t, err, "the platform is in maintenance")
	require.Equal(t, platform.ExitOK, i.CLI(t, "system", "maintenance", "off").Code)
}

// agree waits until a run has the status, or does not exist if it is empty.
func (i *installation) agree(t *testing.T, id, status string) {
	t.Helper()
	platform.Eventually(t, 2*agreed, func() string {
		res, err := i.Runs.GetRun(t.Context(),
			connect.NewRequest(&signalboxv1.GetRunRequest{Project: platform.DefaultProject, Id: id}))
		switch {
		case err != nil && status == "" && connect.CodeOf(err) == connect.CodeNotFound:
			return ""
		case err != nil:
			return err.Error()
		case res.Msg.GetRun().GetStatus() != status:
			return fmt.Sprintf("run %s is %s, not %q: %v", id, res.Msg.GetRun().GetStatus(), status, res.Msg.GetRun().GetError())
		}
		return ""
	})
}

// works wakes the open runs, and requires that each has ended once, as every run of the load that exists has, and that
// new runs start.
func (i *installation) works(t *testing.T, open []string) {
	t.Helper()
	sendTogether(t, i.Server, "go", 1)
	for _, id := range open {
		i.agree(t, id, "completed")
	}
	for _, id := range slices.Concat(open, i.load) {
		list, err := i.client.ListWorkflow(t.Context(),
			&workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf("WorkflowId = '%s'", id)})
		require.NoError(t, err)
		require.LessOrEqual(t, len(list.GetExecutions()), 1, "run %s was executed twice", id)
	}
	platform.Eventually(t, 2*agreed, func() string {
		for _, r := range i.AllRuns(t, i.short, 500) {
			if !slices.Contains(platform.Ended(), r.GetStatus()) {
				return fmt.Sprintf("run %s is %s", r.GetId(), r.GetStatus())
			}
		}
		return ""
	})
	i.Await(t, i.Start(t, i.short, "").GetId(), soon, "completed")
}

// Backups of the database and of Temporal that were made at different moments under load are restored: both agree
// again, in either order.
func TestRestoredBackupsAgreeAgain(t *testing.T) {
	t.Parallel()
	needPostgres(t)
	if !database.HasBackup("postgres") {
		t.Skip("pg_dump is missing; `make setup` installs Postgres")
	}
	for _, databaseFirst := range []bool{true, false} {
		name := map[bool]string{true: "database older than Temporal", false: "database newer than Temporal"}[databaseFirst]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := &installation{environment: newEnvironment(t, platform.Postgres(t))}
			i.listens = i.Publish(t, platform.Document("listens", "  - ask: {listen: {to: {one: {with: {type: go}}}}}\n"))
			i.twice = i.Publish(t, platform.Document("twice", "  - first: {listen: {to: {one: {with: {type: step}}}}}\n"+
				"  - second: {listen: {to: {one: {with: {type: go}}}}}\n"))
			i.short = i.Publish(t, platform.Document("short", "  - rest: {wait: {milliseconds: 50}}\n"))
			h := i.backUp(t, databaseFirst)
			i.restore(t, h)
			if databaseFirst {
				i.held(t)
			}
			i.agree(t, h.after, "")
			i.agree(t, h.canceled, "canceled")
			i.agree(t, h.done, "completed")
			for _, id := range h.before {
				i.agree(t, id, "waiting")
			}
			open := slices.Clone(h.before)
			for _, id := range h.between {
				if databaseFirst {
					i.agree(t, id, "waiting")
					require.Equal(t, "api", i.Run(t, id).GetTrigger())
					i.listensFor(t, id, "go")
					open = append(open, id)
					continue
				}
				i.agree(t, id, "failed")
				require.True(t, strings.HasSuffix(i.Run(t, id).GetError().GetType(), "execution_missing"), i.Run(t, id).GetError())
			}
			if databaseFirst {
				i.listensFor(t, h.stepped, "go")
				open = append(open, h.stepped)
			} else {
				platform.Eventually(t, agreed, func() string {
					if !strings.Contains(i.Output(), "reopened_in_temporal") {
						return "the run that is open in Temporal alone is not reported"
					}
					return ""
				})
			}
			i.works(t, open)
		})
	}
}

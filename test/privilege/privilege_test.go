package privilege_test

import (
	"slices"
	"testing"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// rare lists rights that the scenario does not use, and when the servers do.
func rare() map[string]string {
	return map[string]string{
		"hget":                   "an acquisition of a lease whose answer was lost is sent again",
		"UPDATE ON runs_cluster": "the servers are connected to another Temporal",
		"DELETE ON problems":     "a problem was resolved a day ago",
		// A run with the verdict POISON is ended in a project with end_poison.
		"SELECT ON poison_endings": "poison", "INSERT ON poison_endings": "poison", "DELETE ON poison_endings": "poison",
	}
}

// The platform does everything with the rights of the files in deploy, and uses each of them.
func TestRightsAreSufficientAndExact(t *testing.T) {
	t.Parallel()
	e := start(t)
	e.Server = e.launch(t, platform.API, "SIGNALBOX_RUNS_STUCK_AFTER=2s")
	first := e.launch(t, platform.Worker, quick()...)
	e.AwaitAPI(t)
	first.AwaitReady(t)
	second := e.launch(t, platform.Worker, quick()...)
	second.AwaitReady(t)
	defer func() {
		e.requireExactACL(t)
		e.requireExactPermissions(t)
		e.requireExactGrants(t)
	}()
	e.definitions(t)
	e.runs(t)
	e.programs(t)
	e.events(t)
	e.webhooks(t)
	e.schedules(t)
	e.quotas(t)
	e.batches(t)
	e.system(t)
	e.access(t)
	e.faults(t, first, second)
	e.retention(t)
}

// requireSameRights compares the rights in one place with those that were used there.
func requireSameRights(t *testing.T, where string, granted, used []string) {
	t.Helper()
	for _, right := range granted {
		if !slices.Contains(used, right) && rare()[right] == "" {
			t.Errorf("%s: %q is granted and was not used", where, right)
		}
	}
	for _, right := range used {
		if !slices.Contains(granted, right) {
			t.Errorf("%s: %q was used and is not granted", where, right)
		}
	}
}

package procedures_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// listens waits for the event go.
const listens = "  - ask: {listen: {to: {one: {with: {type: go}}}}}\n"

// lost is what has happened since the backup of the database that is restored.
type lost struct {
	workflow string
	before   string // a run that was open at the backup
	since    string // a run that was started since, and is open
	ended    string // a run that was started and has ended since
}

// work makes runs before and after the backup that back makes.
func (i *installation) work(t *testing.T, back func()) lost {
	t.Helper()
	l := lost{workflow: i.publish(t, "default", document("asks", listens))}
	short := i.publish(t, "default", document("short", "  - done: {set: {a: 1}}\n"))
	l.before = i.run(t, "default", l.workflow, "waiting")
	i.awaitListener(t, l.before)
	back()
	l.since = i.run(t, "default", l.workflow, "waiting")
	l.ended = i.run(t, "default", short, "completed")
	return l
}

// awaitListener waits until a run is registered for events.
func (i *installation) awaitListener(t *testing.T, id string) {
	t.Helper()
	i.awaitAnswer(t, "/v1/projects/default/runs/"+id+"/waits", `"go"`)
}

// replaceDatabase drops the database and restores the backup into an empty one of the same name, with the next command
// of a section, if there is one.
func (i *installation) replaceDatabase(t *testing.T, restore func()) {
	t.Helper()
	i.cluster.asAdmin(t, "postgres", "DROP DATABASE "+i.database+" WITH (FORCE)")
	i.createDatabase(t)
	restore()
	i.grant(t)
	// As if the backup were ten minutes old: with one of the last minute no maintenance begins.
	i.cluster.asAdmin(t, i.database, "UPDATE runs_cluster SET compared_at = compared_at - 600000000")
}

// awaitRestored waits until a comparison has found that the database was restored. The first one is seconds after the
// start, and the runs of a test are too young for it: a command makes the next ones.
func (i *installation) awaitRestored(t *testing.T) {
	t.Helper()
	platform.Eventually(t, soon, func() string {
		_, reconciled, err := i.call(t, http.MethodPost, "/v1/system/runs:reconcile")
		_, body, failed := i.call(t, http.MethodGet, "/v1/system/maintenance")
		if err != nil || failed != nil || !strings.Contains(body, "restored") {
			return fmt.Sprintf("the restore is not found: %v %s, %v %s", err, reconciled, failed, body)
		}
		return ""
	})
}

// adopted requires that the runs since the backup are there again.
func (i *installation) adopted(t *testing.T, l lost) {
	t.Helper()
	i.await(t, "default", l.ended, "completed")
	for _, id := range []string{l.before, l.since} {
		i.await(t, "default", id, "waiting")
		i.awaitListener(t, id)
	}
}

// continues wakes the open runs, and starts a new one.
func (i *installation) continues(t *testing.T, l lost) {
	t.Helper()
	again := i.run(t, "default", l.workflow, "waiting")
	i.awaitListener(t, again)
	i.shell(t, "signalbox event send --type go --source /shop")
	for _, id := range []string{l.before, l.since, again} {
		i.await(t, "default", id, "completed")
	}
}

// restore makes a backup under work, and restores it.
func restore(t *testing.T, g *guide) {
	i := operating(t, postgres.Get(t))
	l := i.work(t, func() { i.do(t, g.section(t, "Backup and restore"), "pg_dump") })
	i.stop(t)
	s := g.section(t, "Restore")
	i.replaceDatabase(t, func() { i.do(t, s, "pg_restore") })
	i.redis.Kill()
	i.startRedis(t)
	i.start(t)
	i.awaitRestored(t)

	check := g.section(t, "Check")
	command := check.take(t, "signalbox restore check")
	i.eventually(t, command+" || test $? = 1", "the backup is of")
	i.until(t, check, "the backup is of", "signalbox restore check --fix")
	i.eventually(t, command, "")
	i.do(t, s, "signalbox system maintenance off")

	verify := g.section(t, "Verify")
	i.do(t, verify, "signalbox system status")
	i.do(t, verify, "signalbox restore check")
	require.Contains(t, i.do(t, verify, "signalbox audit list"), l.since)
	require.NotContains(t, i.do(t, verify, "signalbox run list"), l.since)
	i.do(t, verify, "signalbox problem list")
	i.adopted(t, l)
	i.continues(t, l)

	payloads := g.section(t, "Keep large values outside the backup")
	i.settings = append(i.settings, "SIGNALBOX_PAYLOADS_STORE=folder",
		"SIGNALBOX_PAYLOADS_FOLDER="+filepath.Join(i.folder, "payloads"))
	i.set(i.settings[len(i.settings)-2:]...)
	i.shell(t, "mkdir payloads")
	require.Contains(t, i.do(t, payloads, "signalbox check-config"), "no violations")
	i.stop(t)
	i.start(t)
	i.shell(t, "mv payloads away")
	i.until(t, payloads, `payloads\s.*down`, "signalbox system status")
	i.shell(t, "mv away payloads")
}

// losePostgres restores a backup after the database was lost, with a workflow that was published since the backup.
func losePostgres(t *testing.T, g *guide) {
	i := operating(t, postgres.Get(t))
	began := ""
	l := i.work(t, func() {
		began = time.Now().UTC().Format(time.RFC3339)
		i.shell(t, `pg_dump --format=custom --file=signalbox.dump "$OWNER_DSN"`)
	})
	late := []string{document("late", "  - done: {set: {a: 1}}\n"), document("later", listens)}
	ended := i.run(t, "default", i.publish(t, "default", late[0]), "completed")
	open := i.run(t, "default", i.publish(t, "default", late[1]), "waiting")
	starter := document("starter", "  - done: {set: {a: 1}}\n", "schedule: {on: {one: {with: {type: other}}}}\n")
	started := i.publish(t, "default", starter)
	const event = "signalbox event send --type other --source /shop --id 1"
	i.shell(t, event)
	i.eventually(t, "signalbox run list --status completed --workflow "+started, started)
	i.replaceDatabase(t, func() {
		i.stop(t)
		i.shell(t, `pg_restore --exit-on-error --no-owner --dbname "$OWNER_DSN" signalbox.dump`)
	})
	i.start(t)
	i.awaitRestored(t)

	s := g.section(t, "Postgres is lost")
	i.until(t, s, "the backup is of", "signalbox restore check --fix")
	i.do(t, s, "signalbox system maintenance off")
	require.Contains(t, i.do(t, s, "signalbox audit list"), l.since)
	i.until(t, s, "RUNS_FOREIGN", "signalbox problem list")
	for _, source := range late {
		i.publish(t, "default", source)
	}
	i.do(t, s, "signalbox system reconcile", "TIME", began)
	i.await(t, "default", ended, "completed")
	i.await(t, "default", open, "waiting")
	i.publish(t, "default", starter)
	i.shell(t, event)
	i.eventually(t, "signalbox run count --workflow "+started, `completed\s+1`)
	i.adopted(t, l)
	i.continues(t, l)
}

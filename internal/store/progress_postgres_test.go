package store_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
)

// TestPostgresReadsProgressOfManyDispatchers reads the progress of ten thousand dispatchers, of which three hundred
// have due deliveries and ten others have events that are not routed: all at once as for an overview, and by name as
// the supervisor does, which has two seconds per cycle. The limit applies with SIGNALBOX_PROVE=1, without other load.
func TestPostgresReadsProgressOfManyDispatchers(t *testing.T) {
	t.Parallel()
	const all, active, behind = 10_000, 300, 10
	trials, limit := 5, patience
	if os.Getenv("SIGNALBOX_PROVE") == "1" {
		trials, limit = 40, 2*time.Second
	}
	o := postgres(t)
	s := start(t, o)
	c, err := pgx.Connect(t.Context(), o.DSN)
	require.NoError(t, err)
	_, err = c.Exec(t.Context(), fmt.Sprintf(`
CREATE TEMPORARY TABLE many AS SELECT n, 'p' || n AS project, n <= %[2]d AS due, n > %[1]d - %[3]d AS behind FROM generate_series(1, %[1]d) AS n;
INSERT INTO projects (name, description, created_at) SELECT project, '', 1 FROM many;
INSERT INTO inboxes (project, head, parked, received_at) SELECT project, 3, NOT due, 1 FROM many;
INSERT INTO dispatchers (project, task_queue, epoch, holder, routed, pending, progressed_at)
SELECT project, 'signalbox-' || project, 1, 'host', CASE WHEN behind THEN 2 ELSE 3 END, CASE WHEN due THEN 3 ELSE 0 END, 1 FROM many;
INSERT INTO events (project, position, id, source, type, subject, data_content_type, data_schema, data_base64, received_at, actor)
SELECT project, e, 'e' || e, '/s', 't', '', '', '', FALSE, 1, '' FROM many, generate_series(1, 3) AS e;
INSERT INTO deliveries (id, project, position, kind, status, due_at, claimed_by, attempts, workflow, version, run_id, listener, created_at, updated_at, reason, positions)
SELECT project || '-' || e, project, e, 'start', CASE WHEN due THEN 'pending' ELSE 'done' END, CASE WHEN due THEN e END, 1, 1, 'w', '1', 'r', '', 1, 1, '', ''
FROM many, generate_series(1, 3) AS e`, all, active, behind))
	require.NoError(t, err)
	require.NoError(t, c.Close(t.Context()))
	names := make([]inbox.Name, all)
	for n := range names {
		names[n].Project = fmt.Sprintf("p%d", n+1)
		names[n].TaskQueue = "signalbox-" + names[n].Project
	}
	for what, asked := range map[string][]inbox.Name{"all": nil, "by name": names} {
		var took []time.Duration
		for range trials {
			began := time.Now()
			list, err := s.Events().Progress(t.Context(), asked)
			took = append(took, time.Since(began))
			require.NoError(t, err)
			require.Len(t, list, all)
			require.Len(t, slices.DeleteFunc(list, func(p inbox.Progress) bool { return !p.Due }), active+behind)
		}
		slices.Sort(took)
		p95 := took[(len(took)*95+99)/100-1]
		t.Logf("progress of %d dispatchers, %s: p50 %s, p95 %s over %d trials", all, what, took[(len(took)-1)/2], p95, trials)
		require.Less(t, p95, limit, what)
	}
}

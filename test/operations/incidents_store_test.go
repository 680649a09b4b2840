package operations_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// storeIncidents are those of the database and of Redis.
func storeIncidents() map[string]incident {
	return map[string]incident{
		"Postgres killed": {
			short:   true,
			parts:   parts{postgres: true},
			breaks:  func(_ *testing.T, w *watched) { w.postgres.Crash() },
			repairs: func(t *testing.T, w *watched) { w.postgres.Restart(t) },
			alerts: []expected{{
				name: "StoreUnavailable", severity: "page", sees: []string{`"store"[^}]*"down"`},
				verifies: []string{`"store"[^}]*"up"`},
			}},
		},
		"Postgres frozen": {
			parts: parts{postgres: true},
			breaks: func(t *testing.T, w *watched) {
				w.postgres.Freeze()
				t.Cleanup(w.postgres.Thaw)
			},
			repairs: func(_ *testing.T, w *watched) { w.postgres.Thaw() },
			alerts: []expected{{
				name: "StoreUnavailable", severity: "page", sees: []string{`"store"[^}]*"down"`},
				verifies: []string{`"store"[^}]*"up"`},
			}},
		},
		"the disk of Postgres full": {
			parts: parts{disk: 256},
			breaks: func(t *testing.T, w *watched) {
				w.startRuns(t, 200*time.Millisecond) // until they need it, Postgres does not notice
				w.faulted = time.Now()
				w.undo = w.postgres.FillDisk(t)
			},
			repairs: func(_ *testing.T, w *watched) { w.undo() },
			alerts: []expected{{
				name: "StoreUnavailable", severity: "page", sees: []string{`"store"[^}]*"down"`},
				verifies: []string{`"store"[^}]*"up"`},
			}},
		},
		"the database slow": {
			parts:   parts{proxy: true},
			breaks:  func(_ *testing.T, w *watched) { w.database.Slow(130 * time.Millisecond) },
			repairs: func(_ *testing.T, w *watched) { w.database.Slow(0) },
			alerts: []expected{{
				name: "StoreSlow", severity: "ticket", sees: []string{"db_client_operation_duration_seconds_bucket"},
				verifies: []string{`\d+ of \d+`},
			}},
		},
		"Redis killed": {
			short:   true,
			breaks:  func(_ *testing.T, w *watched) { w.redis.Kill() },
			repairs: func(t *testing.T, w *watched) { w.redis.Restart(t) },
			alerts: []expected{{
				name: "LeasesUnavailable", severity: "page", sees: []string{`"leases"[^}]*"down"`, "Redis"},
				verifies: []string{`default.*(routing|parked)`},
			}},
			silent: []string{"DispatcherMissing"},
		},
		"Redis without its data": {breaks: func(t *testing.T, w *watched) { w.redis.Flush(t) }},
		"Redis frozen": {
			breaks: func(t *testing.T, w *watched) {
				w.redis.Freeze()
				t.Cleanup(w.redis.Thaw)
			},
			repairs: func(_ *testing.T, w *watched) { w.redis.Thaw() },
			alerts: []expected{{
				name: "LeasesUnavailable", severity: "page", sees: []string{`"leases"[^}]*"down"`, "Redis"},
				verifies: []string{`default.*(routing|parked)`},
			}},
			silent: []string{"DispatcherMissing"},
		},
	}
}

// exec executes statements in the database.
func (w *watched) exec(t *testing.T, statements ...string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), w.options.Store.DSN)
	require.NoError(t, err)
	defer func() { _ = c.Close(context.WithoutCancel(t.Context())) }() // nothing is lost with it
	for _, statement := range statements {
		_, err := c.Exec(t.Context(), statement)
		require.NoError(t, err, statement)
	}
}

// startRuns publishes a workflow and starts runs of it at an interval until the end of the test. Refused starts are
// part of incidents.
func (w *watched) startRuns(t *testing.T, every time.Duration) {
	t.Helper()
	name := w.Publish(t, platform.Document("steady", "  - note:\n      set: {seen: true}\n"))
	w.names["WORKFLOW"] = name
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				_, _ = w.TryStart(ctx, name, "") // see above
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

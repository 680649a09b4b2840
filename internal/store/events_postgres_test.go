package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/event"
)

// TestPostgresRoutingWaitsForPublishers holds the inbox as a publisher does, and commits while routing waits: routing
// must then read that event.
func TestPostgresRoutingWaitsForPublishers(t *testing.T) {
	t.Parallel()
	o := postgres(t)
	s := start(t, o)
	owner := benchOwner(t, s)
	c, err := pgx.Connect(t.Context(), o.DSN)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(t.Context())) }()
	other, err := pgx.Connect(t.Context(), o.DSN)
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close(t.Context())) }()

	for _, tt := range []struct {
		name  string
		call  func() error
		check func(t *testing.T)
	}{
		{
			"listen",
			func() error {
				_, err := s.Events().Listen(t.Context(), event.Listener{ID: "l", Project: "default", RunID: "r"})
				return err
			},
			func(t *testing.T) {
				l, found, err := s.Events().GetListener(t.Context(), "default", "l")
				require.NoError(t, err)
				require.True(t, found)
				require.Equal(t, int64(1), l.Since)
			},
		},
		{
			"park",
			func() error {
				parked, err := s.Events().Park(t.Context(), "default", owner)
				if parked {
					return errors.New("parked beside an event")
				}
				return err
			},
			func(*testing.T) {},
		},
		{
			"publish",
			func() error {
				accepted, _, err := s.Events().Publish(t.Context(), "default", benchEvents(0, 1))
				if err == nil && accepted[0].Position != 4 {
					return fmt.Errorf("accepted at %d", accepted[0].Position)
				}
				return err
			},
			func(*testing.T) {},
		},
	} {
		tx, err := c.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `UPDATE inboxes SET head = head + 1 WHERE project = 'default'`)
		require.NoError(t, err)
		done := make(chan error, 1)
		go func() { done <- tt.call() }()
		require.Eventually(t, func() bool {
			var waiting int
			require.NoError(t, other.QueryRow(t.Context(), `SELECT COUNT(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting))
			return waiting > 0 || len(done) > 0
		}, 30*time.Second, time.Millisecond, tt.name)
		require.Empty(t, done, "%s does not wait", tt.name)
		require.NoError(t, tx.Commit(t.Context()))
		require.NoError(t, <-done, tt.name)
		tt.check(t)
	}
}

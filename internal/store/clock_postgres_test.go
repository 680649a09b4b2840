package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// The database's clock is three hours ahead of this process's, or behind it: each age is computed with one of them.
func TestPostgresWithAnotherClock(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"ahead": 3 * time.Hour, "behind": -3 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := postgres(t)
			c, err := pgx.Connect(t.Context(), o.DSN)
			require.NoError(t, err)
			_, err = c.Exec(t.Context(), `CREATE SCHEMA shifted`)
			require.NoError(t, err)
			_, err = c.Exec(t.Context(),
				`CREATE FUNCTION shifted.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS 'SELECT pg_catalog.clock_timestamp() + interval ''`+
					ahead.String()+`'''`)
			require.NoError(t, err)
			o.DSN += "&options=-csearch_path%3Dshifted,pg_catalog,public"
			s := start(t, o)
			_, err = c.Exec(t.Context(),
				`INSERT INTO shifted.event_outbox (project, occurred_at, id, type, source, subject, data) VALUES ('default', $1, 'e', 't', 's', '', '')`,
				time.Now().UnixMicro())
			require.NoError(t, err)
			_, err = c.Exec(t.Context(),
				`INSERT INTO shifted.inboxes (project, head, parked, received_at) VALUES ('default', 1, FALSE, 1)`)
			require.NoError(t, err)
			_, err = c.Exec(t.Context(),
				`INSERT INTO shifted.events (project, position, id, source, type, subject, data_content_type, data_schema, data_base64, received_at, actor)
VALUES ('default', 1, 'e', '/s', 't', '', '', '', FALSE, $1, '')`, time.Now().Add(ahead).UnixMicro())
			require.NoError(t, err)
			require.NoError(t, c.Close(t.Context()))

			facts := s.Facts(t.Context())
			require.NoError(t, facts.Err)
			require.InDelta(t, ahead.Seconds(), facts.ClockSkew.Seconds(), 60)

			require.NoError(t, s.BeatWorker(t.Context(), worker.Worker{ServerID: "w", StartedAt: time.Now()}, time.Hour))
			workers, err := s.ListWorkers(t.Context(), time.Hour, 10)
			require.NoError(t, err)
			require.Len(t, workers, 1)
			require.InDelta(t, 0, time.Since(workers[0].BeatAt).Seconds(), 60)
			unpublished, err := s.Outbox().Backlog(t.Context())
			require.NoError(t, err)
			require.InDelta(t, 30, unpublished.Oldest.Seconds(), 30)
			progress, err := s.Events().Progress(t.Context(), []inbox.Name{{Project: "default", TaskQueue: "q"}})
			require.NoError(t, err)
			require.Len(t, progress, 1)
			require.InDelta(t, 30, progress[0].Lag.Seconds(), 30)
		})
	}
}

package store_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/match"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// execute changes a database in a way that current binaries do not.
func execute(t *testing.T, o store.Options, statement string) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldb.Options{Driver: o.Driver, DSN: o.DSN, MaxConns: 1, CallTimeout: patience})
	require.NoError(t, err)
	require.NoError(t, db.Exec(t.Context(), "test", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx, statement)
		return err
	}))
	require.NoError(t, db.Close())
}

// TestListenersOutsideTheIndex has a listener without a shape, like one whose values are not valid, and one with a
// shape that another release computes. They receive their events like the others.
func TestListenersOutsideTheIndex(t *testing.T) {
	t.Parallel()
	for name, options := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, ctx := options(t), t.Context()
			s := start(t, o)
			for _, id := range []string{"indexed", "later", "other", "without"} {
				order := `12345`
				if id == "other" {
					order = `1`
				}
				_, err := s.Events().Listen(ctx, event.Listener{ID: id, Project: "default", RunID: "r", Spec: event.Spec{
					Mode: event.One, Filters: []event.Filter{{
						With:      map[string]event.Value{"type": {Literal: json.RawMessage(`"com.example.order.placed"`)}},
						Correlate: map[string]event.Key{"order": {From: ".data.order", Expect: json.RawMessage(order)}},
					}},
				}})
				require.NoError(t, err)
			}
			execute(t, o, `UPDATE listener_types SET shape = '', value = '' WHERE listener = 'without'`)
			execute(t, o, `UPDATE listener_types SET shape = 'later', value = 'later' WHERE listener = 'later'`)
			benchPublish(t, s, 1, 1)

			batch, err := s.Events().Unrouted(ctx, "default", 1)
			require.NoError(t, err)
			evaluation := match.New(match.Options{}).Evaluate(batch)
			found, err := s.Events().FindListeners(ctx, "default", evaluation.Lookups())
			require.NoError(t, err)
			var woken []string
			for _, d := range evaluation.Routings(found)[0].Deliveries {
				woken = append(woken, d.Listener)
			}
			require.Equal(t, []string{"indexed", "later", "without"}, woken)
		})
	}
}

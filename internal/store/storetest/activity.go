package storetest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// idle is an idle time that has passed since each activity, also since one of this moment.
const idle = -time.Hour

func review(t *testing.T, s Store, after time.Duration) project.Review {
	t.Helper()
	changed, err := s.Activity().Review(t.Context(), after)
	require.NoError(t, err)
	return changed
}

func requireServed(t *testing.T, s Store, names ...string) {
	t.Helper()
	list, err := s.Activity().Served(t.Context())
	require.NoError(t, err)
	require.Equal(t, names, list)
}

func testParking(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	createProject(t, s, "quiet")
	requireServed(t, s, "default", "quiet")
	require.Empty(t, review(t, s, 100*365*24*time.Hour), "nothing is as old")

	require.ElementsMatch(t, []string{"default", "quiet"}, review(t, s, idle).Parked)
	requireServed(t, s)
	p, err := s.GetProject(ctx, "quiet")
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), p.ParkedAt, time.Minute)
	require.Empty(t, review(t, s, idle), "they are parked already")

	// A start wakes its project alone, and the project stays served while the run is open.
	insert(t, s, newRun("r1", 1))
	requireServed(t, s, here)
	require.Empty(t, review(t, s, idle))
	_, err = s.FinishMissing(ctx, "r1", run.Failed, nil, at(9), entry("run.finish", here, "r1"))
	require.NoError(t, err)
	require.Equal(t, project.Review{Parked: []string{here}}, review(t, s, idle))

	// A run whose start was not recorded, such as one that an older server inserts, wakes its project later.
	insert(t, s, newRun("r2", 2))
	setActivity(t, s, here, 1, 1)
	require.Equal(t, project.Review{Woken: []string{here}}, review(t, s, idle))
	requireServed(t, s, here)

	require.Equal(t, project.Review{Woken: []string{"quiet"}}, review(t, s, 0), "without an idle time all are served")
	requireServed(t, s, here, "quiet")
}

// setActivity sets when something last happened in a project, and since when it is parked.
func setActivity(t *testing.T, s Store, name string, active int, parked any) {
	t.Helper()
	require.NoError(t, s.Database().Write(t.Context(), "set activity", func(ctx context.Context, c sqldb.Conn) error {
		_, err := c.ExecContext(ctx, `UPDATE projects SET active_at = $2, created_at = $2, parked_at = $3 WHERE name = $1`,
			name, active, parked)
		return err
	}))
}

// A project in which runs start while it is being parked is served, whatever the order of the statements of two servers
// is, and without a further review.
func testParkingAtOnce(t *testing.T, open Opener) {
	stores := []Store{open(t), open(t)}
	for round := range 30 {
		setActivity(t, stores[0], here, 1, nil)
		id := fmt.Sprintf("r%d", round)
		var both sync.WaitGroup
		both.Go(func() { review(t, stores[0], time.Hour) })
		both.Go(func() { insert(t, stores[1], newRun(id, round)) })
		both.Wait()
		requireServed(t, stores[1], here)
		_, err := stores[0].FinishMissing(t.Context(), id, run.Failed, nil, at(99), entry("run.finish", here, id))
		require.NoError(t, err)
	}
}

func testParkedProjectsWithWork(t *testing.T, open Opener) {
	s := open(t)
	createProject(t, s, "quiet")
	give(t, s, newEvent("a"))
	require.Equal(t, []string{"quiet"}, review(t, s, idle).Parked, "an event waits in the other")
	o := fence(t, s, "host-1")
	route(t, s, o, routing(1, event.Routed, startOf(1, "a/a")))
	require.Empty(t, review(t, s, idle), "a delivery waits")
	require.Len(t, due(t, s, o, 1), 1)
	require.NoError(t, s.Events().RecordOutcomes(t.Context(), here, o,
		[]inbox.DeliveryOutcome{outcome("1 a/a", inbox.Done, 0)}))
	require.Equal(t, []string{here}, review(t, s, idle).Parked)
	give(t, s, newEvent("b"))
	requireServed(t, s, here)
}

package annotation

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/event"
)

// outages are rows of outages, and the events that were published about them.
type outages struct {
	rows   []Outage
	events []event.Event
}

func (o *outages) WriteOutages(context.Context, []Outage) error { return nil }

func (o *outages) ListOutages(context.Context, time.Time, time.Time, int) ([]Outage, error) {
	return append([]Outage{}, o.rows...), nil
}

func TestOutageIsReportedOncePerProject(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	o := &outages{}
	n := NewNotifier(NotifierOptions{
		Outages: o, Now: func() time.Time { return now },
		Projects: func(context.Context, ...string) ([]string, error) { return []string{"shop"}, nil },
		List: func(context.Context, event.ListFilter) ([]event.Event, error) {
			return o.events[max(0, len(o.events)-1):], nil
		},
		Publish: func(_ context.Context, _ string, list []event.Event) ([]event.Accepted, error) {
			o.events = append(o.events, list...)
			return nil, nil
		},
	})
	types := func() (list []string) {
		require.NoError(t, n.pass(t.Context()))
		require.NoError(t, n.pass(t.Context()))
		for _, e := range o.events {
			list = append(list, e.Type)
		}
		return list
	}
	require.Empty(t, types())
	o.rows = []Outage{{Server: "a", Since: now.Add(-time.Minute), SeenAt: now.Add(-time.Second)}}
	require.Equal(t, []string{event.ConnectionDown}, types())
	// Another server saw it earlier, and is connected again first.
	o.rows = append(o.rows, Outage{
		Server: "b", Since: now.Add(-2 * time.Minute), SeenAt: now, EndedAt: now.Add(-2 * time.Second)})
	require.Len(t, types(), 1)
	o.rows[0].EndedAt = now.Add(-time.Second)
	require.Equal(t, []string{event.ConnectionDown, event.ConnectionUp}, types())
	require.Equal(t, "up-after-"+o.events[0].ID, o.events[1].ID)
	o.rows = append(o.rows, Outage{Server: "a", Since: now, SeenAt: now})
	require.Len(t, types(), 3)
}

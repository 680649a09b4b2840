package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// laneModel is the test's model of its deliveries.
type laneModel struct {
	t     testing.TB
	s     Store
	owner inbox.Owner
	// open are the deliveries that are neither done nor dead, by ID; flying those of them that are claimed, late those
	// that are retried in an hour.
	open         map[string]event.Delivery
	flying, late map[string]bool
	head         int64
}

// ahead returns the open deliveries before d in its lane.
func (m *laneModel) ahead(d event.Delivery) (list []event.Delivery) {
	for _, o := range m.open {
		if o.RunID == d.RunID && o.Kind == event.Wake && o.Position < d.Position {
			list = append(list, o)
		}
	}
	return list
}

func (m *laneModel) route(runs []string) {
	m.head++
	give(m.t, m.s, newEvent(fmt.Sprint(m.head)))
	r := routing(m.head, event.Routed)
	for _, run := range runs {
		d := wakeOf(m.head, run)
		if run == "start" {
			d = startOf(m.head, "a/a")
		}
		r.Deliveries = append(r.Deliveries, d)
		m.open[d.ID] = d
	}
	route(m.t, m.s, m.owner, r)
}

// due claims deliveries and checks them.
func (m *laneModel) due(limit int) int {
	list := due(m.t, m.s, m.owner, limit)
	for i, d := range list {
		_, open := m.open[d.ID]
		require.True(m.t, open, "%s has an outcome", d.ID)
		require.False(m.t, m.flying[d.ID], "%s is claimed twice", d.ID)
		require.False(m.t, m.late[d.ID], "%s is not due", d.ID)
		if d.Kind == event.Wake {
			for _, a := range m.ahead(d) {
				at := slices.IndexFunc(list, func(l event.Delivery) bool { return l.ID == a.ID })
				require.True(m.t, at >= 0 && at < i, "%s comes without %s", d.ID, a.ID)
			}
		}
	}
	for _, d := range list {
		m.flying[d.ID] = true
	}
	return len(list)
}

func (m *laneModel) finish(id string, result inbox.Result, after time.Duration) {
	d := m.open[id]
	writeResults(m.t, m.s, m.owner, outcome(id, result, after))
	delete(m.flying, id)
	if result != inbox.Retry {
		delete(m.open, id)
		return
	}
	m.late[id] = after > 0
	for _, o := range m.open {
		if d.Kind == event.Wake && o.Kind == event.Wake && o.RunID == d.RunID && o.Position > d.Position {
			delete(m.flying, o.ID) // released with it
		}
	}
}

// testLanesInAnyOrder applies random operations: a lane keeps its order, no delivery is claimed twice, and all are done
// in the end.
func testLanesInAnyOrder(t *testing.T, open Opener) {
	s := open(t)
	m := &laneModel{t: t, s: s, open: map[string]event.Delivery{}}
	rapid.Check(t, func(r *rapid.T) {
		m.t = t
		clear(m.open)
		m.flying, m.late = map[string]bool{}, map[string]bool{}
		m.owner = fence(t, s, "host")
		r.Repeat(map[string]func(*rapid.T){
			"route": func(r *rapid.T) {
				m.route(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"x", "y", "start"}), 1, 3, rapid.ID).Draw(r, "runs"))
			},
			"due":   func(r *rapid.T) { m.due(rapid.IntRange(1, 5).Draw(r, "limit")) },
			"fence": func(*rapid.T) { m.owner = fence(t, s, "host"); clear(m.flying) },
			"record": func(r *rapid.T) {
				var ids []string
				for id := range m.flying {
					// Deliveries of a lane are made in its order.
					if !slices.ContainsFunc(m.ahead(m.open[id]), func(a event.Delivery) bool {
						return m.flying[a.ID]
					}) || m.open[id].Kind == event.Start {
						ids = append(ids, id)
					}
				}
				if len(ids) == 0 {
					r.Skip("nothing is claimed")
				}
				slices.Sort(ids)
				id := rapid.SampledFrom(ids).Draw(r, "id")
				result := rapid.SampledFrom([]inbox.Result{inbox.Done, inbox.Dead, inbox.Retry, inbox.Retry}).Draw(r, "result")
				m.finish(id, result, rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(r, "after"))
			},
			"": func(*rapid.T) { require.Equal(t, int64(len(m.open)), pending(t, s)) },
		})
		// At the end: no delivery is late any more, and each claim has an outcome.
		for id := range m.late {
			if d, open := m.open[id]; open {
				_, err := s.Events().Redeliver(t.Context(), here, d.Position, []string{id}, at(1),
					entry(audit.EventRedeliver, here, id))
				require.NoError(t, err)
			}
		}
		clear(m.late)
		m.owner = fence(t, s, "host")
		clear(m.flying)
		for len(m.open) > 0 {
			require.Positive(t, m.due(100), "left: %v", m.open)
			for id := range m.flying {
				m.finish(id, inbox.Done, 0)
			}
		}
		require.Zero(t, m.due(1))
		require.Zero(t, pending(t, s))
	})
}

package conn_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/conn/conntest"
)

// spells collects connections and outages that have ended.
type spells struct {
	mu                   sync.Mutex
	connections, outages []conn.Ended
}

func (s *spells) watch(o *conn.Options) {
	o.ConnectionEnded = func(_ context.Context, e conn.Ended) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.connections = append(s.connections, e)
	}
	o.OutageEnded = func(_ context.Context, e conn.Ended) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.outages = append(s.outages, e)
	}
}

func (s *spells) known() (connections, outages []conn.Ended) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]conn.Ended{}, s.connections...), append([]conn.Ended{}, s.outages...)
}

func TestEndsOfConnectionsAndOutagesAreReported(t *testing.T) {
	t.Parallel()
	var seen spells
	r := newRig(t, conntest.Options{}, seen.watch)
	began := time.Now()
	r.connect(t)
	connections, outages := seen.known()
	require.Empty(t, connections, "it lasts")
	require.Empty(t, outages, "connecting for the first time is no outage")

	r.frontend.Stop()
	down := r.until(t, func(s conn.Status) bool { return s.State == conn.Down })
	connections, outages = seen.known()
	require.Len(t, connections, 1)
	require.Empty(t, outages, "it lasts")
	require.Equal(t, []string{down.Address, "default"}, []string{connections[0].Address, connections[0].Namespace})
	require.Positive(t, connections[0].Lasted)
	require.Less(t, connections[0].Lasted, time.Since(began))

	later := r.until(t, func(s conn.Status) bool { return s.Statistics.LastOutage >= 300*time.Millisecond })
	require.Equal(t, later.Statistics.LastOutage, later.Statistics.LongestOutage, "it counts while it lasts")
	require.NoError(t, r.frontend.Restart())
	up := r.until(t, func(s conn.Status) bool { return s.State == conn.Connected })
	_, outages = seen.known()
	require.Equal(t, []conn.Ended{{Address: down.Address, Namespace: "default", Lasted: up.Statistics.LastOutage}}, outages)

	require.NoError(t, r.Stop(soon(t)))
	connections, outages = seen.known()
	require.Len(t, connections, 2, "a stop ends the connection")
	require.Len(t, outages, 1)
}

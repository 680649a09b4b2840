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

// endedLog collects connections and outages that have ended.
type endedLog struct {
	mu                   sync.Mutex
	connections, outages []conn.Ended
}

func (s *endedLog) options(o *conn.Options) {
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

func (s *endedLog) get() (connections, outages []conn.Ended) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]conn.Ended{}, s.connections...), append([]conn.Ended{}, s.outages...)
}

// await waits until as many ends were reported, which is right after the status shows them.
func (s *endedLog) await(t *testing.T, connections, outages int) {
	t.Helper()
	require.Eventually(t, func() bool {
		c, o := s.get()
		return len(c) == connections && len(o) == outages
	}, patience, time.Millisecond)
}

func TestEndsOfConnectionsAndOutagesAreReported(t *testing.T) {
	t.Parallel()
	var seen endedLog
	r := newRig(t, conntest.Options{}, seen.options)
	began := time.Now()
	r.connect(t)
	up := r.Status()
	connections, outages := seen.get()
	require.Empty(t, connections, "the connection has not ended")
	require.Empty(t, outages, "connecting for the first time is no outage")

	r.frontend.Stop()
	down := r.until(t, func(s conn.Status) bool { return s.State == conn.Down })
	seen.await(t, 1, 0)
	connections, _ = seen.get()
	require.Equal(t, []string{down.Address, "default"}, []string{connections[0].Address, connections[0].Namespace})
	require.Positive(t, connections[0].Lasted)
	require.Less(t, connections[0].Lasted, time.Since(began))
	require.Equal(t, down.Since.Sub(up.Statistics.ConnectedSince), connections[0].Lasted, "it ends when the outage begins")

	later := r.until(t, func(s conn.Status) bool { return s.Statistics.LastOutage >= 300*time.Millisecond })
	require.Equal(t, down.Since, later.Since)
	require.Equal(t, later.Statistics.LastOutage, later.Statistics.LongestOutage, "an outage counts while it lasts")
	require.NoError(t, r.frontend.Restart())
	up = r.until(t, func(s conn.Status) bool { return s.State == conn.Connected })
	seen.await(t, 1, 1)
	_, outages = seen.get()

	require.Equal(t, []conn.Ended{{Address: down.Address, Namespace: "default", Lasted: up.Statistics.LastOutage}},
		outages)

	require.NoError(t, r.Stop(soon(t)))
	connections, outages = seen.get()
	require.Len(t, connections, 2, "a stop ends the connection")
	require.Len(t, outages, 1)
}

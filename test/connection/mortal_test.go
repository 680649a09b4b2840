package connection_test

import (
	"sync"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/conn"
)

// mortal is a worker set whose worker ends when a test wants it, as after a fatal error.
type mortal struct {
	queue string

	mu     sync.Mutex
	newest worker.Worker
}

func newMortal(queue string) *mortal { return &mortal{queue: queue} }

func (m *mortal) factory(s *subject) conn.Factory {
	build := s.worker(m.queue)
	return func(c client.Client) (worker.Worker, error) {
		w, err := build(c)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.newest = w
		return w, err
	}
}

func (m *mortal) die() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.newest.Stop()
}

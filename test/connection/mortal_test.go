package connection_test

import (
	"context"
	"errors"
	"sync"

	"go.temporal.io/sdk/worker"
)

// mortal is a worker plugin that does on a test's word what the SDK does after a poll error that lasts: it tells of a fatal
// error and stops the worker.
type mortal struct {
	worker.PluginBase

	mu   sync.Mutex
	tell func(error)
}

func (*mortal) Name() string { return "mortal" }

// ConfigureWorker implements worker.Plugin: the newest worker is the one to die.
func (m *mortal) ConfigureWorker(_ context.Context, options worker.PluginConfigureWorkerOptions) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tell = options.WorkerOptions.OnFatalError
	return nil
}

func (m *mortal) die() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tell(errors.New("the worker's polls are refused for good"))
}

package connection_test

import (
	"context"
	"errors"
	"sync"

	"go.temporal.io/sdk/worker"
)

// failingWorker is a worker plugin that simulates a lasting poll error on demand: as the SDK does, it reports a fatal
// error, which stops the worker.
type failingWorker struct {
	worker.PluginBase

	mu           sync.Mutex
	onFatalError func(error)
}

func (*failingWorker) Name() string { return "failing" }

// ConfigureWorker implements worker.Plugin. It records the newest worker, which is the one that fails.
func (m *failingWorker) ConfigureWorker(_ context.Context, options worker.PluginConfigureWorkerOptions) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onFatalError = options.WorkerOptions.OnFatalError
	return nil
}

func (m *failingWorker) fail() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onFatalError(errors.New("the worker's polls are refused permanently"))
}

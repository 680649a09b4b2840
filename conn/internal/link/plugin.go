package link

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

// The two bases have one name.
type (
	clientBase = client.PluginBase
	workerBase = worker.PluginBase
)

// plugin is how a link learns what its client's workers poll, and how it gives them time to stop.
type plugin struct {
	clientBase
	workerBase

	stopTimeout time.Duration

	building sync.Mutex // held while workers are being made
	mu       sync.Mutex
	queues   []string
}

var (
	_ client.Plugin = (*plugin)(nil)
	_ worker.Plugin = (*plugin)(nil)
)

// Name implements both plugins.
func (*plugin) Name() string { return "signalbox.conn" }

// ConfigureWorker implements worker.Plugin.
func (p *plugin) ConfigureWorker(_ context.Context, options worker.PluginConfigureWorkerOptions) error {
	if options.WorkerOptions.WorkerStopTimeout == 0 {
		options.WorkerOptions.WorkerStopTimeout = p.stopTimeout
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queues = append(p.queues, options.TaskQueue)
	return nil
}

func (p *plugin) record(build func()) []string {
	p.building.Lock()
	defer p.building.Unlock()
	p.mu.Lock()
	p.queues = nil
	p.mu.Unlock()
	build()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queues
}

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
	made     *Made
}

// Made is what is known of the workers that one call has made.
type Made struct {
	// Queues are the task queues that they poll.
	Queues []string
	// Died gets why the first of them died, if one does.
	Died chan error
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
	if p.made == nil {
		return nil // made by somebody who has kept the client
	}
	p.made.Queues = append(p.made.Queues, options.TaskQueue)
	died, told := p.made.Died, options.WorkerOptions.OnFatalError
	options.WorkerOptions.OnFatalError = func(err error) {
		select {
		case died <- err:
		default:
		}
		if told != nil {
			told(err)
		}
	}
	return nil
}

func (p *plugin) record(build func()) Made {
	p.building.Lock()
	defer p.building.Unlock()
	p.note(&Made{Died: make(chan error, 1)})
	defer p.note(nil)
	build()
	p.mu.Lock()
	defer p.mu.Unlock()
	return *p.made
}

func (p *plugin) note(made *Made) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made = made
}

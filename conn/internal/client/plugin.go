package client

import (
	"context"
	"sync"
	"time"

	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

// Aliases, since both types are named PluginBase and cannot be embedded together under that name.
type (
	clientBase = sdkclient.PluginBase
	workerBase = worker.PluginBase
)

// plugin is the SDK plugin by which a client records what its workers poll, and sets their stop timeout.
type plugin struct {
	clientBase
	workerBase

	stopTimeout time.Duration

	recording sync.Mutex // held during record
	mu        sync.Mutex
	workers   *Workers
}

// Workers describes the workers that one call of [Client.RecordWorkers] has made.
type Workers struct {
	// Queues are their task queues.
	Queues []string
	// Died receives the fatal error of the first of them that dies.
	Died chan error
}

var (
	_ sdkclient.Plugin = (*plugin)(nil)
	_ worker.Plugin    = (*plugin)(nil)
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
	if p.workers == nil {
		return nil // not made by RecordWorkers: a caller has kept the client
	}
	p.workers.Queues = append(p.workers.Queues, options.TaskQueue)
	died, onFatalError := p.workers.Died, options.WorkerOptions.OnFatalError
	options.WorkerOptions.OnFatalError = func(err error) {
		select {
		case died <- err:
		default:
		}
		if onFatalError != nil {
			onFatalError(err)
		}
	}
	return nil
}

func (p *plugin) record(build func()) Workers {
	p.recording.Lock()
	defer p.recording.Unlock()
	p.setWorkers(&Workers{Died: make(chan error, 1)})
	defer p.setWorkers(nil)
	build()
	p.mu.Lock()
	defer p.mu.Unlock()
	return *p.workers
}

func (p *plugin) setWorkers(made *Workers) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workers = made
}

package link

import (
	"context"
	"sync"
)

// patience knows which polls wait for a connection, by task queue, so that those of a worker that is being stopped can be
// told not to. The SDK leaves it to the server to end them, which cannot while there is no connection.
type patience struct {
	mu      sync.Mutex
	leaving map[string]int
	waiting map[string]map[int]context.CancelFunc
	last    int
}

func newPatience() *patience {
	return &patience{leaving: map[string]int{}, waiting: map[string]map[int]context.CancelFunc{}}
}

// wait makes the context of a poll that may wait, until done is called; false for a queue that is being left.
func (p *patience) wait(ctx context.Context, queue string) (waiting context.Context, done func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leaving[queue] > 0 {
		return ctx, func() {}, false
	}
	ctx, cancel := context.WithCancel(ctx)
	p.last++
	number := p.last
	if p.waiting[queue] == nil {
		p.waiting[queue] = map[int]context.CancelFunc{}
	}
	p.waiting[queue][number] = cancel
	return ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.waiting[queue], number)
		cancel()
	}, true
}

// leave lets no poll of the queues wait until back is called. Those that are under way are ended where they cannot be on
// their way to the server.
func (p *patience) leave(queues []string, connected bool) (back func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, queue := range queues {
		p.leaving[queue]++
		if connected {
			continue
		}
		for _, cancel := range p.waiting[queue] {
			cancel()
		}
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, queue := range queues {
			p.leaving[queue]--
		}
	}
}

// abandon ends the waiting polls of a queue that is being left.
func (p *patience) abandon(queue string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leaving[queue] == 0 {
		return
	}
	for _, cancel := range p.waiting[queue] {
		cancel()
	}
}

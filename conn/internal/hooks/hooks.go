// Package hooks keeps those who want to be told of every new client of a connection manager, and tells them.
package hooks

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
)

// List holds hooks in the order of their registration. It is safe for concurrent use.
type List struct {
	log     *slog.Logger
	timeout time.Duration

	mu  sync.Mutex
	all []hook
	// turn lets the hooks of one generation end before those of the next begin.
	turn chan struct{}
}

type hook struct {
	name string
	call func(ctx context.Context, c client.Client) error
}

// New returns an empty list, each of whose hooks is to end within timeout.
func New(log *slog.Logger, timeout time.Duration) *List {
	return &List{log: log, timeout: timeout, turn: make(chan struct{}, 1)}
}

// Add adds a hook.
func (l *List) Add(name string, call func(ctx context.Context, c client.Client) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, hook{name, call})
}

// Tell calls the hooks, one after another, with a generation's client. One that fails is logged and keeps no other back. Once
// life is over it tells nobody.
func (l *List) Tell(life context.Context, c client.Client, generation int) {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	l.mu.Lock()
	all := slices.Clone(l.all)
	l.mu.Unlock()
	if len(all) == 0 || life.Err() != nil {
		return
	}
	l.log.Info("Reinjecting workflow creators into controllers", "generation", generation, "controllers", len(all))
	failures := 0
	for _, one := range all {
		ctx, cancel := context.WithTimeout(life, l.timeout)
		err := one.call(ctx, c)
		cancel()
		if err != nil {
			failures++
			l.log.Error("Failed to reinject workflow creators", "controller", one.name, "generation", generation, "error", err)
		}
	}
	if failures == 0 {
		l.log.Info("Workflow creators reinjected successfully", "generation", generation)
	}
}

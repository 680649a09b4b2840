package conn

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
)

// Hook receives the client of a new generation; see [Manager.OnConnect].
type Hook func(ctx context.Context, c client.Client) error

// hookList holds hooks in the order of their registration. It is safe for concurrent use.
type hookList struct {
	log     *slog.Logger
	timeout time.Duration

	mu  sync.Mutex
	all []namedHook
	// running is held while hooks run: the hooks of one generation end before those of the next begin.
	running sync.Mutex
}

type namedHook struct {
	name string
	call Hook
}

// newHookList returns an empty list. Each hook may take as long as timeout.
func newHookList(log *slog.Logger, timeout time.Duration) *hookList {
	return &hookList{log: log, timeout: timeout}
}

func (l *hookList) add(name string, call Hook) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, namedHook{name, call})
}

// run calls the hooks with a generation's client, one after another. A failing hook is logged, and the next ones are
// called. Once lifetime has ended it calls none.
func (l *hookList) run(lifetime context.Context, c client.Client, generation int) {
	l.running.Lock()
	defer l.running.Unlock()
	l.mu.Lock()
	all := slices.Clone(l.all)
	l.mu.Unlock()
	if len(all) == 0 || lifetime.Err() != nil {
		return
	}
	l.log.Info("Reinjecting workflow creators into controllers", "generation", generation, "controllers", len(all))
	failures := 0
	for _, hook := range all {
		ctx, cancel := context.WithTimeout(lifetime, l.timeout)
		err := hook.call(ctx, c)
		cancel()
		if err != nil {
			failures++
			l.log.Error("Failed to reinject workflow creators", "controller", hook.name, "generation", generation, "error", err)
		}
	}
	if failures == 0 {
		l.log.Info("Workflow creators reinjected successfully", "generation", generation)
	}
}

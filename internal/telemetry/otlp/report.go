package otlp

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// repeatEvery is the time between two log lines about exports that keep failing.
const repeatEvery = time.Minute

// report logs when exports begin to fail, once a minute while they fail, and when they succeed again.
type report struct {
	log          *slog.Logger
	signal, unit string
	now          func() time.Time

	mu      sync.Mutex
	failing bool
	logged  time.Time
	lost    int // since exports began to fail
}

func newReport(log *slog.Logger, signal, unit string) *report {
	return &report{log: log, signal: signal, unit: unit, now: time.Now}
}

// exported records the result of an export of n items.
func (r *report) exported(ctx context.Context, n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		if r.failing {
			r.log.InfoContext(ctx, r.signal+" are exported again", "lost_"+r.unit, r.lost)
		}
		r.failing, r.lost = false, 0
		return
	}
	r.lost += n
	if now := r.now(); !r.failing || now.Sub(r.logged) >= repeatEvery {
		r.failing, r.logged = true, now
		r.log.WarnContext(ctx, r.signal+" cannot be exported, will retry with the next ones", "error", bounded(err.Error()),
			"lost_"+r.unit, r.lost)
	}
}

// bounded shortens an error, which may quote the response of a collector.
func bounded(text string) string {
	const most = 300
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

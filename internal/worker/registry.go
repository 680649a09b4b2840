package worker

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/logger"
)

const (
	// readEvery is how long an answer of the store is used, and rereadEvery how long where the answer decides about a
	// refusal.
	readEvery   = time.Second
	rereadEvery = 50 * time.Millisecond
	// checkTimeout bounds the query.
	checkTimeout = time.Second
	// namedWorkers is how many workers an error names.
	namedWorkers = 3
)

// Registry compares this process with the live workers.
type Registry struct {
	store Store
	own   func() Fingerprint

	mu sync.Mutex
	// asked is the time of the last query, known its result.
	asked   time.Time
	known   []Worker
	asking  bool
	unknown bool
}

// NewRegistry returns a registry over a store. own returns the fingerprint of the runs that this process starts.
func NewRegistry(store Store, own func() Fingerprint) *Registry {
	return &Registry{store: store, own: own}
}

// Check returns an [apperror.Refused] that names both sides when there are live workers and all of them differ from
// this process, and an [apperror.Unavailable] when some do not differ and none of those serves the project. live is a
// result of Live.
func (r *Registry) Check(project string, live []Worker) error {
	own := r.own()
	var agreeing []Worker
	for _, w := range live {
		if own.Differs(w.Fingerprint) {
			continue
		}
		if w.Serves(project) {
			return nil
		}
		agreeing = append(agreeing, w)
	}
	switch {
	case len(live) == 0, len(live) >= maxWorkers: // of more, the rest is not known
		return nil
	case len(agreeing) == 0:
		return mismatch(own, live)
	default:
		return unserved(project, agreeing)
	}
}

// Live returns the workers that were alive at the last query, a second ago at most, and whether it succeeded. One
// caller at a time queries, and the others get the last result meanwhile. An empty result is not cached: without live
// workers any run is accepted, and the first worker may have started just now.
func (r *Registry) Live(ctx context.Context) (live []Worker, known bool) {
	return r.live(ctx, readEvery)
}

// LiveNow is like Live, and queries again unless that was done just now. It is for the check before a refusal: the
// worker that would take the run may have started within the last second.
func (r *Registry) LiveNow(ctx context.Context) (live []Worker, known bool) {
	return r.live(ctx, rereadEvery)
}

func (r *Registry) live(ctx context.Context, age time.Duration) (live []Worker, known bool) {
	r.mu.Lock()
	fresh := !r.asked.IsZero() && time.Since(r.asked) < age && (len(r.known) > 0 || r.unknown)
	if r.asking || fresh {
		defer r.mu.Unlock()
		return r.known, !r.asked.IsZero() && !r.unknown
	}
	r.asking = true
	r.mu.Unlock()

	// The query serves all callers, so it must not end with the context of this one.
	ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()
	found, err := r.store.ListWorkers(ask, AliveFor, maxWorkers)

	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking, r.asked = false, time.Now()
	if err != nil {
		if !r.unknown {
			logger.FromContext(ctx).WarnContext(ctx, "Live workers are not known; runs are started without comparing",
				"error", err)
		}
		r.unknown, r.known = true, nil
		return nil, false
	}
	r.unknown, r.known = false, found
	return found, true
}

func mismatch(own Fingerprint, live []Worker) error {
	var sides []string
	for _, w := range live[:min(len(live), namedWorkers)] {
		sides = append(sides, fmt.Sprintf("worker %s has %s", w.ServerID, w.Fingerprint))
	}
	if more := len(live) - len(sides); more > 0 {
		sides = append(sides, fmt.Sprintf("and %d more differ too", more))
	}
	return apperror.New(apperror.Refused, apperror.ContractMismatch,
		"no live worker would take the run: this server has %s; %s; run both with the same version and the same temporal "+
			"settings",
		own, strings.Join(sides, "; "))
}

// unserved returns the error for a run in a project that none of the workers serves.
func unserved(project string, live []Worker) error {
	var served []string
	for _, w := range live[:min(len(live), namedWorkers)] {
		served = append(served, fmt.Sprintf("worker %s serves %s", w.ServerID, strings.Join(w.Projects, ", ")))
	}
	if more := len(live) - len(served); more > 0 {
		served = append(served, fmt.Sprintf("%d more do not serve it either", more))
	}
	return apperror.New(apperror.Unavailable, apperror.NoWorkerForProject,
		"no live worker serves project %q, so nothing would execute the run: %s; start a worker whose `projects` are empty "+
			"or name it",
		project, strings.Join(served, "; ")).WithRetry(BeatEvery)
}

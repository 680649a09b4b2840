package permission

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
)

const (
	// streamsOfProject bounds the open streams of a project in this process, for each method; streamsOfToken those of one
	// token within them, so that one caller does not lock out the others.
	streamsOfProject = 500
	streamsOfToken   = 100
)

// streams counts the open streams of each method, project and token.
type streams struct {
	mu   sync.Mutex
	open map[streamKey]int
}

// streamKey has no token for the count of all callers.
type streamKey struct{ procedure, project, token string }

func newStreams() *streams { return &streams{open: map[streamKey]int{}} }

// enter counts a stream of the actor of ctx until leave is called.
func (s *streams) enter(ctx context.Context, procedure, project string) (leave func(), err error) {
	actor, _ := auth.ActorFrom(ctx)
	all, own := streamKey{procedure: procedure, project: project}, streamKey{procedure, project, actor.ID}
	s.mu.Lock()
	defer s.mu.Unlock()
	if actor.ID != "" && s.open[own] >= streamsOfToken {
		return nil, apperror.New(apperror.Exhausted, apperror.TooManyWatches,
			"token %q has %d such streams of project %q open in this server, the maximum of one token; close some, or retry "+
				"later", actor.Name, streamsOfToken, project).
			WithRetry(time.Minute)
	}
	if s.open[all] >= streamsOfProject {
		return nil, apperror.New(apperror.Exhausted, apperror.TooManyWatches,
			"project %q has %d such streams open in this server, the maximum; close some, or retry later", project,
			streamsOfProject).WithRetry(time.Minute)
	}
	s.add(all, 1)
	if actor.ID != "" {
		s.add(own, 1)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.add(all, -1)
		if actor.ID != "" {
			s.add(own, -1)
		}
	}, nil
}

// add changes a count. The caller holds the mutex.
func (s *streams) add(key streamKey, n int) {
	if s.open[key] += n; s.open[key] == 0 {
		delete(s.open, key)
	}
}

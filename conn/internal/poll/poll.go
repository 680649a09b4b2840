// Package poll knows which task queues are really polled over a connection, from the polls themselves.
//
// A worker that was started is no proof: its pollers may be in back-off, refused for ever, or gone. A [Tracker] watches the
// poll requests of one client (see [Tracker.Watch]) and answers for a task queue whether every kind of poll that was ever
// made on it is open now or was just answered. A poll is open from the moment it is sent; whether the server is there at
// all is not for this package to say.
package poll

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
)

const (
	// settled is how long a poll must be open to count where the one before it failed: a refused one ends within that.
	settled = 250 * time.Millisecond
	// between is how long after an answered poll the next one may take: a busy worker polls when it has room.
	between = 10 * time.Second
)

// Tracker watches the polls of one client. It is safe for concurrent use.
type Tracker struct {
	now func() time.Time

	mu    sync.Mutex
	lines map[string]map[string]*state // by task queue and kind: there may be thousands of queues
}

// line is one kind of poll on one task queue.
type line struct{ kind, queue string }

// state is what is known of a line.
type state struct {
	open     int
	changed  time.Time // when the number of open polls last came up from none
	answered time.Time
	failed   time.Time
	err      error
}

// NewTracker returns a tracker that has seen nothing.
func NewTracker(now func() time.Time) *Tracker {
	return &Tracker{now: now, lines: map[string]map[string]*state{}}
}

// Watch performs a request and, where it is a poll, notes how it goes.
func (t *Tracker) Watch(ctx context.Context, req any, invoke func() error) error {
	l, ok := lineOf(req)
	if !ok {
		return invoke()
	}
	t.change(l, func(s *state, now time.Time) {
		if s.open == 0 {
			s.changed = now
		}
		s.open++
	})
	err := invoke()
	t.change(l, func(s *state, now time.Time) {
		s.open--
		switch {
		case err == nil:
			s.answered = now
		case errors.Is(ctx.Err(), context.Canceled): // the worker is being stopped
		default:
			s.failed, s.err = now, err
		}
	})
	return err
}

func (t *Tracker) change(l line, fn func(*state, time.Time)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	kinds := t.lines[l.queue]
	if kinds == nil {
		kinds = map[string]*state{}
		t.lines[l.queue] = kinds
	}
	s := kinds[l.kind]
	if s == nil {
		s = &state{}
		kinds[l.kind] = s
	}
	fn(s, t.now())
}

// Poll is what is known of the polls on one task queue.
type Poll struct {
	// OK tells that every kind of poll ever made on the queue is open or was just answered; false where none was made.
	OK bool
	// Last is when a poll was last answered, or when the open one was sent.
	Last time.Time
	// Err is the last failure of a kind that does not poll.
	Err error
}

// Queue tells how a task queue is polled.
func (t *Tracker) Queue(queue string) Poll {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	var out Poll
	seen := false
	for _, s := range t.lines[queue] {
		ok, last := s.polls(now)
		if last.After(out.Last) {
			out.Last = last
		}
		if !ok && s.err != nil {
			out.Err = s.err
		}
		out.OK, seen = ok && (out.OK || !seen), true
	}
	return out
}

func (s *state) polls(now time.Time) (ok bool, last time.Time) {
	last = s.answered
	failing := s.failed.After(s.answered)
	if s.open > 0 {
		if now.Sub(s.changed) >= settled || !failing {
			if s.changed.After(last) {
				last = s.changed
			}
			return true, last
		}
		return false, last
	}
	return !failing && !s.answered.IsZero() && now.Sub(s.answered) < between, last
}

// Is tells whether a request is a poll.
func Is(req any) bool {
	_, ok := lineOf(req)
	return ok
}

// Queue is the task queue of a poll.
func Queue(req any) string {
	l, _ := lineOf(req)
	return l.queue
}

func lineOf(req any) (line, bool) {
	switch poll := req.(type) {
	case *workflowservice.PollWorkflowTaskQueueRequest:
		return line{"workflow", name(poll.GetTaskQueue())}, true
	case *workflowservice.PollActivityTaskQueueRequest:
		return line{"activity", name(poll.GetTaskQueue())}, true
	case *workflowservice.PollNexusTaskQueueRequest:
		return line{"nexus", name(poll.GetTaskQueue())}, true
	default:
		return line{}, false
	}
}

// name is the queue that a worker was made for; a sticky queue is one process's own part of it.
func name(queue *taskqueue.TaskQueue) string {
	if normal := queue.GetNormalName(); normal != "" {
		return normal
	}
	return queue.GetName()
}

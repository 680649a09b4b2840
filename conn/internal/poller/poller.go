// Package poller determines which task queues are polled over a connection, from the poll requests themselves.
//
// A started worker is no proof: its pollers may back off, be refused permanently, or have ended. A [Tracker] watches
// the poll requests of one client (see [Tracker.Watch]) and reports for a task queue whether every kind of poll ever
// made on it is open now or was just answered. A poll counts as open from the moment it is sent: the package does not
// determine whether the server can be reached.
package poller

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
)

const (
	// minOpen is how long a poll must be open to count where the previous one failed: a refused poll ends sooner.
	minOpen = 250 * time.Millisecond
	// maxGap is how long after an answered poll the next one may start: a busy worker polls when it has a free slot.
	maxGap = 10 * time.Second
)

// Tracker watches the polls of one client. It is safe for concurrent use.
type Tracker struct {
	now func() time.Time

	mu      sync.Mutex
	byQueue map[string]map[string]*pollState // by task queue and kind: there may be thousands of queues
}

// pollKey is one kind of poll on one task queue.
type pollKey struct{ kind, queue string }

// pollState is the state of one kind of poll on one task queue.
type pollState struct {
	open      int
	openSince time.Time // when the number of open polls last rose from zero
	answered  time.Time
	failed    time.Time
	err       error
}

// NewTracker returns a tracker without polls.
func NewTracker(now func() time.Time) *Tracker {
	return &Tracker{now: now, byQueue: map[string]map[string]*pollState{}}
}

// Watch invokes a request and, if it is a poll, records its course.
func (t *Tracker) Watch(ctx context.Context, req any, invoke func() error) error {
	l, ok := pollKeyOf(req)
	if !ok {
		return invoke()
	}
	t.update(l, func(s *pollState, now time.Time) {
		if s.open == 0 {
			s.openSince = now
		}
		s.open++
	})
	err := invoke()
	t.update(l, func(s *pollState, now time.Time) {
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

func (t *Tracker) update(l pollKey, fn func(*pollState, time.Time)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	kinds := t.byQueue[l.queue]
	if kinds == nil {
		kinds = map[string]*pollState{}
		t.byQueue[l.queue] = kinds
	}
	s := kinds[l.kind]
	if s == nil {
		s = &pollState{}
		kinds[l.kind] = s
	}
	fn(s, t.now())
}

// Any reports whether a poll was ever made, so that a task may have been received.
func (t *Tracker) Any() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byQueue) > 0
}

// QueueStatus is the state of the polls on one task queue.
type QueueStatus struct {
	// OK: every kind of poll ever made on the queue is open or was just answered. It is false where none was made.
	OK bool
	// Last is when a poll was last answered, or when the open one was sent.
	Last time.Time
	// Err is the last error of a kind of poll that is not OK.
	Err error
}

// Queue returns the state of the polls on a task queue.
func (t *Tracker) Queue(queue string) QueueStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	var out QueueStatus
	seen := false
	for _, s := range t.byQueue[queue] {
		ok, last := s.polling(now)
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

func (s *pollState) polling(now time.Time) (ok bool, last time.Time) {
	last = s.answered
	failing := s.failed.After(s.answered)
	if s.open > 0 {
		if now.Sub(s.openSince) >= minOpen || !failing {
			if s.openSince.After(last) {
				last = s.openSince
			}
			return true, last
		}
		return false, last
	}
	return !failing && !s.answered.IsZero() && now.Sub(s.answered) < maxGap, last
}

// IsPoll reports whether a request is a poll.
func IsPoll(req any) bool {
	_, ok := pollKeyOf(req)
	return ok
}

// TaskQueue returns the task queue of a poll.
func TaskQueue(req any) string {
	l, _ := pollKeyOf(req)
	return l.queue
}

func pollKeyOf(req any) (pollKey, bool) {
	switch poll := req.(type) {
	case *workflowservice.PollWorkflowTaskQueueRequest:
		return pollKey{"workflow", queueName(poll.GetTaskQueue())}, true
	case *workflowservice.PollActivityTaskQueueRequest:
		return pollKey{"activity", queueName(poll.GetTaskQueue())}, true
	case *workflowservice.PollNexusTaskQueueRequest:
		return pollKey{"nexus", queueName(poll.GetTaskQueue())}, true
	default:
		return pollKey{}, false
	}
}

// queueName returns the task queue of the worker; a sticky queue belongs to a normal one.
func queueName(queue *taskqueue.TaskQueue) string {
	if normal := queue.GetNormalName(); normal != "" {
		return normal
	}
	return queue.GetName()
}

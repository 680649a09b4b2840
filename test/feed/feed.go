package feed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
)

const (
	// answerLimit bounds one request. The platform answers far sooner; a frozen one does not answer.
	answerLimit = 5 * time.Second
	// retryLimit bounds how long an event is published again.
	retryLimit = 2 * time.Minute
	// tick is the interval of requests; the rate determines the number of events in each.
	tick = 20 * time.Millisecond
)

// Options are the settings of a feed.
type Options struct {
	Type      string // of the events
	Source    string // of the events; empty: one of its own
	PerSecond int
	Servers   []*platform.Server // used in turn
}

// Event is an accepted event.
type Event struct {
	ID       string
	N        int // the number of the event in the feed, and its data
	Position int64
	// Again reports that the event was a duplicate when the platform answered: an earlier answer was lost.
	Again bool
	Sent  time.Time
	Took  time.Duration // from the first attempt to the answer
}

// Feed is a running producer.
type Feed struct {
	Source, Type string

	servers atomic.Pointer[[]*platform.Server]
	turn    atomic.Uint64
	cancel  context.CancelFunc
	done    chan struct{}
	flying  sync.WaitGroup

	mu       sync.Mutex
	accepted []Event
	failed   error
}

// New makes a producer that sends only by calls of [Feed.Send].
func New(o Options) *Feed {
	f := &Feed{Source: o.Source, Type: o.Type, cancel: func() {}, done: make(chan struct{})}
	if f.Source == "" {
		f.Source = fmt.Sprintf("/feeds/%08x", rand.Uint32())
	}
	close(f.done)
	f.Follow(o.Servers...)
	return f
}

// Start publishes the given number of events per second, without waiting for answers, until Stop is called.
func Start(t platform.T, o Options) *Feed {
	ctx, cancel := context.WithCancel(t.Context())
	f := New(o)
	f.cancel, f.done = cancel, make(chan struct{})
	go func() {
		defer close(f.done)
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		began, n := time.Now(), 0
		for {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			due := int(time.Since(began).Seconds() * float64(o.PerSecond))
			if due > n {
				first := n
				n = due
				f.flying.Go(func() { f.Send(ctx, first, due-first) })
			}
		}
	}()
	t.Cleanup(func() { _ = f.end() }) // Stop reports failures
	return f
}

// Follow sends subsequent events to other servers.
func (f *Feed) Follow(servers ...*platform.Server) { f.servers.Store(&servers) }

// Stop stops publishing, waits until every event is accepted, and returns the events in the order of positions.
func (f *Feed) Stop(t platform.T) []Event {
	t.Helper()
	if err := f.end(); err != nil {
		t.Fatalf("publish: %v", err)
	}
	return f.Accepted()
}

func (f *Feed) end() error {
	f.cancel()
	<-f.done
	f.flying.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// Send publishes a batch of events, beginning with number first, and retries until it is answered.
func (f *Feed) Send(ctx context.Context, first, count int) []Event {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), retryLimit)
	defer cancel()
	request := &signalboxv1.PublishEventsRequest{Project: platform.DefaultProject}
	for n := first; n < first+count; n++ {
		request.Events = append(request.Events, f.event(n))
	}
	sent := time.Now()
	for {
		answer, err := f.publish(ctx, request)
		if err == nil {
			return f.keep(answer, first, sent)
		}
		if !retryable(err) || ctx.Err() != nil {
			f.fail(fmt.Errorf("events %d to %d: %w", first, first+count-1, err))
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// retryable reports whether to publish again: there was no answer, or the platform is temporarily unavailable.
func retryable(err error) bool {
	reason, code := platform.Reason(err)
	return reason == "" || code == connect.CodeUnavailable || code == connect.CodeDeadlineExceeded ||
		code == connect.CodeCanceled
}

func (f *Feed) event(n int) *signalboxv1.CloudEvent {
	return &signalboxv1.CloudEvent{
		Id: fmt.Sprintf("%06d", n), Source: f.Source, Type: f.Type,
		Data: &signalboxv1.JsonValue{Json: fmt.Sprintf(`{"n":%d}`, n)},
	}
}

func (f *Feed) publish(ctx context.Context,
	request *signalboxv1.PublishEventsRequest) (*signalboxv1.PublishEventsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	servers := *f.servers.Load()
	server := servers[f.turn.Add(1)%uint64(len(servers))]
	answer, err := server.Events.PublishEvents(ctx, connect.NewRequest(request))
	if err != nil {
		return nil, err
	}
	if got := len(answer.Msg.GetAccepted()); got != len(request.GetEvents()) {
		return nil, fmt.Errorf("%d events were answered with %d", len(request.GetEvents()), got)
	}
	return answer.Msg, nil
}

func (f *Feed) keep(answer *signalboxv1.PublishEventsResponse, first int, sent time.Time) []Event {
	took := time.Since(sent)
	events := make([]Event, len(answer.GetAccepted()))
	for i, a := range answer.GetAccepted() {
		events[i] = Event{ID: a.GetId(), N: first + i, Position: a.GetPosition(), Again: a.GetDuplicate(), Sent: sent,
			Took: took}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.accepted = append(f.accepted, events...)
	return events
}

func (f *Feed) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = err
	}
}

// Accepted returns the events accepted so far, in the order of positions.
func (f *Feed) Accepted() []Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := slices.Clone(f.accepted)
	slices.SortFunc(out, func(a, b Event) int { return int(a.Position - b.Position) })
	return out
}

// String summarizes the publishing.
func (f *Feed) String() string {
	again := 0
	events := f.Accepted()
	for _, e := range events {
		if e.Again {
			again++
		}
	}
	return fmt.Sprintf("%d events accepted, %d of them answered only when published again", len(events), again)
}

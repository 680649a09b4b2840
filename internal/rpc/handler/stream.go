package handler

import (
	"context"
	"sync"
	"time"
)

const (
	// streamRate is the maximum number of messages of a stream in streamPeriod, and topicSpacing the minimum time between
	// two messages of one topic.
	streamRate   = 4
	streamPeriod = time.Second
	topicSpacing = streamPeriod / streamRate
)

// stream merges the messages of several topics into one stream with a bounded rate. A message is made when it can be
// sent, so that it contains the state of that moment, and nothing queues behind a slow client.
type stream[M any] struct {
	send      func(M) error
	heartbeat func() M

	turn chan struct{}         // held by the sender; guards sent
	sent [streamRate]time.Time // times of the last messages, the oldest first

	mu   sync.Mutex
	last time.Time // of the last message
}

func newStream[M any](send func(M) error, heartbeat func() M) *stream[M] {
	return &stream[M]{send: send, heartbeat: heartbeat, turn: make(chan struct{}, 1), last: time.Now()}
}

// topic sends the messages of one topic until ctx ends or the topic has ended, which is no error.
type topic[M any] func(ctx context.Context, o *outlet[M]) error

// run runs all topics and returns when all have ended, or with the first error.
func (s *stream[M]) run(ctx context.Context, topics []topic[M]) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var beating, group sync.WaitGroup
	beating.Go(func() {
		if err := s.beat(ctx); err != nil {
			cancel(err)
		}
	})
	var failed sync.Once
	var err error
	for _, t := range topics {
		group.Go(func() {
			if topicErr := t(ctx, &outlet[M]{stream: s}); topicErr != nil {
				failed.Do(func() { err = topicErr })
				cancel(topicErr)
			}
		})
	}
	group.Wait()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause // why the topics were canceled
	}
	cancel(nil)
	beating.Wait()
	return err
}

// beat sends a heartbeat after each interval without a message.
func (s *stream[M]) beat(ctx context.Context) error {
	timer := time.NewTimer(heartbeat)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if time.Since(s.lastSent()) >= heartbeat {
			err := s.message(ctx, func(context.Context) (M, bool, error) { return s.heartbeat(), true, nil })
			if err != nil && ctx.Err() == nil {
				return err
			}
		}
		timer.Reset(heartbeat - time.Since(s.lastSent()))
	}
}

func (s *stream[M]) lastSent() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// message waits until the rate allows a message, and sends the one that take returns then; false if there is none.
func (s *stream[M]) message(ctx context.Context, take func(context.Context) (M, bool, error)) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turn }()
	if err := sleepUntil(ctx, s.sent[0].Add(streamPeriod)); err != nil {
		return err
	}
	m, ok, err := take(ctx)
	if err != nil || !ok {
		return err
	}
	if err := s.send(m); err != nil {
		return err
	}
	now := time.Now()
	copy(s.sent[:], s.sent[1:])
	s.sent[streamRate-1] = now
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = now
	return nil
}

// outlet sends the messages of one topic. It is for one goroutine.
type outlet[M any] struct {
	stream *stream[M]
	next   time.Time
}

// message is [stream.message] with the spacing of the topic.
func (o *outlet[M]) message(ctx context.Context, take func(context.Context) (M, bool, error)) error {
	if err := sleepUntil(ctx, o.next); err != nil {
		return err
	}
	if err := o.stream.message(ctx, take); err != nil {
		return err
	}
	o.next = time.Now().Add(topicSpacing)
	return nil
}

// polled returns a topic that reads a value at an interval, and sends it first and whenever it has changed.
func polled[M, V any](interval time.Duration, read func(ctx context.Context) (V, error), same func(a, b V) bool,
	messageOf func(V) M) topic[M] {
	return func(ctx context.Context, o *outlet[M]) error {
		var last *V
		for {
			now, err := read(ctx)
			if err != nil {
				return err
			}
			if last == nil || !same(*last, now) {
				last = &now
				if err := o.message(ctx, func(context.Context) (M, bool, error) { return messageOf(now), true, nil }); err != nil {
					return err
				}
			}
			if err := sleepUntil(ctx, time.Now().Add(interval)); err != nil {
				return err
			}
		}
	}
}

func sleepUntil(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

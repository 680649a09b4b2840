// Package sender matches the events of all projects with their webhooks, and sends the deliveries that result.
//
//	s := sender.New(sender.Options{Queue: store, Keys: ring, Guard: netguard.New(nil), …})
//	err := s.Start(ctx)
//
// Every process runs one. All state is in the database, and Temporal is not needed: events about the connection to
// Temporal are sent while it is unavailable. An event is matched in one transaction with the position up to which its
// project is matched. A delivery is claimed by one process for a time; when that process crashes, another one sends it
// again after that time.
//
// At most [PerWebhook] deliveries of a webhook are sent at a time over all processes, and one while its receiver fails,
// so that a receiver that is slow or dead uses a small part of the requests of a process. Deliveries are not sent in
// order.
package sender

import (
	"context"
	"net/http"
	"time"

	"github.com/signalbox-dev/signalbox/internal/backoff"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/loop"
	"github.com/signalbox-dev/signalbox/internal/netguard"
	"github.com/signalbox-dev/signalbox/internal/webhook"
)

// PerWebhook is the number of deliveries of one webhook that are sent at a time.
const PerWebhook = 4

const (
	// matchEvery and sendEvery are the intervals of the searches for new events and due deliveries.
	matchEvery = 500 * time.Millisecond
	sendEvery  = time.Second
	// matchLimit is how many events one transaction matches.
	matchLimit = 500
	// leaseMargin is how much longer a claim is than an attempt: the time to record the outcome.
	leaseMargin = 10 * time.Second
	// firstRetry and maxRetry are the delays after the first failure and the longest one; each is half to the whole of it.
	firstRetry = 5 * time.Second
	maxRetry   = 8 * time.Hour
	// recordEvery is the first delay between attempts to record an outcome.
	recordEvery = 100 * time.Millisecond
	// stopFor is how long a stop waits for the attempts in progress.
	stopFor = 3 * time.Second
)

// Metrics counts attempts.
type Metrics interface {
	// Attempted counts a finished attempt (signalbox_webhook_deliveries_total): delivered, retried or dead.
	Attempted(ctx context.Context, outcome string)
}

// Options configure a sender.
type Options struct {
	Queue webhook.Queue
	Keys  webhook.Keys
	Guard netguard.Guard
	// Timeout bounds one attempt, RetryFor the time in which a delivery is attempted, PauseAfter the time after which a
	// webhook whose attempts all fail is paused.
	Timeout, RetryFor, PauseAfter time.Duration
	// MaxConcurrent is the number of deliveries that this process sends at a time.
	MaxConcurrent int
	UserAgent     string
	Metrics       Metrics
	Now           func() time.Time
}

// Lease returns how long a delivery is claimed.
func (o Options) Lease() time.Duration { return o.Timeout + leaseMargin }

// Sender matches events and sends deliveries.
type Sender struct {
	o        Options
	client   *http.Client
	matching *loop.Loop
	sending  *loop.Loop
	// slots has an entry for each delivery that is being sent.
	slots chan struct{}
}

// New returns a sender. It sends nothing before Start, except by [Sender.Send].
func New(o Options) *Sender {
	s := &Sender{o: o, client: newClient(o), slots: make(chan struct{}, o.MaxConcurrent)}
	s.matching = loop.New(s.match)
	s.sending = loop.New(s.send)
	return s
}

// Start begins to match and to send.
func (s *Sender) Start(ctx context.Context) error {
	if err := s.matching.Start(ctx); err != nil {
		return err
	}
	return s.sending.Start(ctx)
}

// Stop begins no new attempt and waits for those in progress. They are canceled after stopFor, or when ctx ends:
// receivers that do not answer must not delay the stop of the process, and a canceled delivery is sent again.
func (s *Sender) Stop(ctx context.Context) error {
	if err := s.matching.Stop(ctx); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, stopFor)
	defer cancel()
	err := s.sending.Stop(limited)
	s.client.CloseIdleConnections()
	return err
}

// Wake makes the sender look for due deliveries.
func (s *Sender) Wake() { s.sending.Wake() }

// match matches the events of all projects once.
func (s *Sender) match(ctx, work context.Context) time.Duration {
	projects, err := s.o.Queue.Unmatched(work)
	for _, project := range projects {
		for more := true; more && err == nil && ctx.Err() == nil; {
			var made int
			made, more, err = s.o.Queue.Match(work, project, matchLimit, webhook.NewMatcher)
			if made > 0 {
				s.Wake()
			}
		}
		if err != nil {
			logger.FromContext(work).WarnContext(work, "Events could not be matched with webhooks; trying again",
				"project", project, "error", err)
		}
	}
	return matchEvery
}

// send claims due deliveries for the free slots, and sends them. The end of each attempt wakes the loop.
func (s *Sender) send(ctx, work context.Context) time.Duration {
	free := cap(s.slots) - len(s.slots)
	if free == 0 {
		return sendEvery
	}
	ids, err := s.o.Queue.Waiting(work, free)
	for _, id := range ids {
		if err != nil || free <= 0 || ctx.Err() != nil {
			break
		}
		var claims []webhook.Claim
		claims, err = s.o.Queue.Claim(work, id, min(PerWebhook, free), s.o.Lease())
		for _, c := range claims {
			free--
			s.slots <- struct{}{}
			s.sending.Go(func() {
				defer s.Wake()
				defer func() { <-s.slots }()
				s.Send(work, c)
			})
		}
	}
	if err != nil && ctx.Err() == nil {
		logger.FromContext(work).WarnContext(work, "Due deliveries of webhooks could not be claimed; trying again",
			"error", err)
	}
	return sendEvery
}

// Send sends a claimed delivery and records the outcome, for as long as the claim lasts.
func (s *Sender) Send(ctx context.Context, c webhook.Claim) {
	claimed, cancel := context.WithTimeout(ctx, s.o.Lease())
	defer cancel()
	answer := s.attempt(claimed, c)
	if ctx.Err() != nil && answer.attempt.HTTPStatus == 0 {
		return // stopped: the delivery is sent again when the claim has ended
	}
	o := decide(c, answer, limits{retryFor: s.o.RetryFor, pauseAfter: s.o.PauseAfter}, s.o.Now())
	if o.Pause != "" {
		entry := disabled(ctx, c.Webhook, o.Pause, s.o.Now())
		o.Entry = &entry
	}
	for n := 1; ; n++ {
		finished, err := s.o.Queue.Finish(claimed, c, o)
		if err == nil {
			if finished {
				s.report(ctx, c, o)
			}
			return
		}
		if !loop.Sleep(claimed, backoff.Delay(recordEvery, time.Second, n)) {
			logger.FromContext(ctx).WarnContext(ctx,
				"The outcome of a webhook's delivery could not be recorded; it is sent again",
				"project", c.Webhook.Project, "webhook", c.Webhook.Name, "delivery", c.Delivery.ID, "error", err)
			return
		}
	}
}

func (s *Sender) report(ctx context.Context, c webhook.Claim, o webhook.Outcome) {
	outcome := map[webhook.Status]string{
		webhook.Delivered: Delivered, webhook.Pending: Retried, webhook.Dead: Dead}[o.Status]
	s.o.Metrics.Attempted(ctx, outcome)
	log := logger.FromContext(ctx).With("project", c.Webhook.Project, "webhook", c.Webhook.Name, "delivery", c.Delivery.ID)
	switch {
	case o.Pause != "":
		log.WarnContext(ctx, "A webhook was paused", "reason", o.Pause)
	case o.Status == webhook.Dead:
		log.WarnContext(ctx, "A delivery to a webhook was given up", "attempts", c.Delivery.Attempts,
			"error", o.Attempt.Error)
	default:
		log.DebugContext(ctx, "A delivery to a webhook was attempted", "outcome", outcome, "status", o.Attempt.HTTPStatus,
			"error", o.Attempt.Error)
	}
}

// The outcomes that [Metrics] counts.
const (
	Delivered = "delivered"
	Retried   = "retried"
	Dead      = "dead"
)

// Outcomes returns all outcomes.
func Outcomes() []string { return []string{Delivered, Retried, Dead} }

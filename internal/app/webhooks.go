package app

import (
	"errors"
	"net/netip"
	"time"

	"github.com/signalbox-dev/signalbox/internal/annotation"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/outbox"
	"github.com/signalbox-dev/signalbox/internal/netguard"
	"github.com/signalbox-dev/signalbox/internal/webhook"
	"github.com/signalbox-dev/signalbox/internal/webhook/sender"
)

// webhooks sends events to other systems. Every process sends.
type webhooks struct {
	service *webhook.Service
	sender  *sender.Sender
}

// newConnectionEvents creates the part that publishes events about outages of Temporal. Every process has one; one
// elected process does so.
func (c *components) newConnectionEvents() *annotation.Notifier {
	return annotation.NewNotifier(annotation.NotifierOptions{
		Outages: c.storage.Annotations(), Projects: c.storage.Webhooks().Receiving, List: c.events.service.List,
		Publish: event.Platform{Service: c.events.service}.Publish, Exclusive: c.storage.Exclusive, Now: time.Now,
	})
}

// newFailureEvents creates the part that publishes the events about failures, which are committed with these.
func (c *components) newFailureEvents() *outbox.Publisher {
	return outbox.NewPublisher(
		outbox.Options{Store: c.storage.Outbox(), Committed: c.events.service.Committed, PublicURL: c.cfg.API.PublicURL})
}

func newWebhooks(p *process, s *storage) (*webhooks, error) {
	cfg, guard, rows := p.cfg.Webhooks, netguard.New(p.cfg.Calls.Networks()), s.Webhooks()
	o := sender.Options{
		Queue: rows, Keys: p.keys, Guard: guard, Timeout: cfg.Timeout, RetryFor: cfg.RetryFor, PauseAfter: cfg.PauseAfter,
		MaxConcurrent: cfg.MaxConcurrent, UserAgent: "signalbox/" + p.version, Metrics: p.telemetry.Webhooks, Now: time.Now,
	}
	w := &webhooks{sender: sender.New(o)}
	w.service = webhook.NewService(webhook.Options{
		Store: rows, Keys: p.keys, Sender: w.sender, TestLease: o.Lease(), Now: time.Now,
		Permits: func(host string) bool {
			addr, err := netip.ParseAddr(host)
			return err != nil || guard.Permits(addr) // a name is checked when it is resolved
		},
	})
	return w, errors.Join(p.telemetry.ObserveWebhooks(rows.Backlogs), p.telemetry.ObserveUnpublished(s.Outbox().Backlog))
}

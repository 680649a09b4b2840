package app

import (
	"net/netip"
	"time"

	"github.com/signalbox-dev/signalbox/internal/netguard"
	"github.com/signalbox-dev/signalbox/internal/webhook"
	"github.com/signalbox-dev/signalbox/internal/webhook/sender"
)

// webhooks sends events to other systems. Every process sends.
type webhooks struct {
	service *webhook.Service
	sender  *sender.Sender
}

func newWebhooks(p *process, s *storage) *webhooks {
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
	return w
}

package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/webhook"
)

// BenchmarkEnds ends one run in each call: that completes, that fails and that no webhook reports, and that one
// reports. "reported" includes the move of the event into the inbox.
func BenchmarkEnds(b *testing.B) {
	for name, options := range databases() {
		for _, c := range []struct {
			name   string
			status run.Status
			types  []string
		}{
			{"completed", run.Completed, nil}, {"failed", run.Failed, nil},
			{"failed, not selected", run.Failed, []string{event.ConnectionDown}},
			{"failed, reported", run.Failed, []string{event.RunFailed}},
		} {
			b.Run(name+"/"+c.name, func(b *testing.B) {
				s := start(b, options(b))
				if c.types != nil {
					w := webhook.Webhook{
						ID: "w", Project: "default", Name: "w", Format: webhook.CloudEvents, Filter: webhook.Filter{Types: c.types},
						Sealed:    []byte{1},
						CreatedAt: time.Unix(1, 0), UpdatedAt: time.Unix(1, 0),
					}
					require.NoError(b, s.Webhooks().ChangeWebhook(b.Context(), w.Project,
						func([]webhook.Webhook) (webhook.Change, error) {
							return webhook.Change{To: &w, Head: true,
								Entry: audit.Entry{Time: w.CreatedAt, Action: audit.WebhookCreate, Project: w.Project, Subject: w.Name}}, nil
						}))
				}
				var i int
				for b.Loop() {
					b.StopTimer()
					i++
					u := benchUpdate(benchInsert(b, s, i), 1, c.status)
					u.State.EndedAt = u.State.Since
					if c.status == run.Failed {
						u.State.Error = &run.Error{Type: "communication", Status: 503, Title: "Unavailable", Instance: "/do/0/charge"}
					}
					b.StartTimer()
					_, err := s.ApplyUpdates(b.Context(), []run.Update{u})
					require.NoError(b, err)
					if len(c.types) > 0 && c.types[0] == event.RunFailed {
						moved, _, err := s.Outbox().Move(b.Context(), "default", 1, func(e event.Event) event.Event { return e })
						require.NoError(b, err)
						require.Equal(b, 1, moved)
					}
				}
			})
		}
	}
}

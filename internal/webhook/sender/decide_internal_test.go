package sender

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/webhook"
)

func TestOutcomeOfAnAttempt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	bounds := limits{retryFor: 72 * time.Hour, pauseAfter: 120 * time.Hour}
	failed := func(code int) answer { return answer{attempt: webhook.Attempt{HTTPStatus: code, Error: "no"}} }
	claim := func(change func(c *webhook.Claim)) webhook.Claim {
		c := webhook.Claim{Delivery: webhook.Delivery{Position: 1, RetryFrom: now, Attempts: 1}}
		change(&c)
		return c
	}
	plain := claim(func(*webhook.Claim) {})

	require.Equal(t, webhook.Delivered,
		decide(plain, answer{attempt: webhook.Attempt{HTTPStatus: 200}}, bounds, now).Status)

	first := decide(plain, failed(500), bounds, now)
	require.Equal(t, webhook.Pending, first.Status)
	require.WithinRange(t, now.Add(first.Retry), now.Add(2500*time.Millisecond), now.Add(5*time.Second))

	late := decide(claim(func(c *webhook.Claim) { c.Delivery.Failures = 30 }), failed(0), bounds, now)
	require.WithinRange(t, now.Add(late.Retry), now.Add(4*time.Hour), now.Add(8*time.Hour))

	asked := failed(429)
	asked.retryAfter = time.Hour
	require.Equal(t, time.Hour, decide(plain, asked, bounds, now).Retry)

	gone := decide(plain, failed(410), bounds, now)
	require.Equal(t, webhook.Pending, gone.Status)
	require.Contains(t, gone.Pause, "410 Gone")

	over := decide(claim(func(c *webhook.Claim) {
		c.Delivery.RetryFrom, c.Delivery.Attempts = now.Add(-72*time.Hour), 18
	}), failed(500), bounds, now)
	require.Equal(t, []any{webhook.Dead, "given up after 18 attempts: no", ""},
		[]any{over.Status, over.Attempt.Error, over.Pause})

	long := decide(claim(func(c *webhook.Claim) {
		c.Webhook.FailingSince = now.Add(-120 * time.Hour)
	}), failed(500), bounds, now)
	require.Contains(t, long.Pause, "every attempt since 2026-02-24T12:00:00Z has failed")
	short := decide(claim(func(c *webhook.Claim) {
		c.Webhook.FailingSince = now.Add(-119 * time.Hour)
	}), failed(500), bounds, now)
	require.Empty(t, short.Pause)

	test := decide(claim(func(c *webhook.Claim) { c.Delivery.Position = 0 }), failed(500), bounds, now)
	require.Equal(t, webhook.Dead, test.Status, "a test is attempted once")
}

package sender

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/backoff"
	"github.com/signalbox-dev/signalbox/internal/webhook"
)

// answer is the result of one request.
type answer struct {
	attempt webhook.Attempt
	// retryAfter is what the receiver asks for; zero where it asks for nothing.
	retryAfter time.Duration
}

// limits bound the attempts.
type limits struct{ retryFor, pauseAfter time.Duration }

// decide returns what becomes of a delivery after an attempt.
func decide(c webhook.Claim, a answer, l limits, now time.Time) webhook.Outcome {
	d, o := c.Delivery, webhook.Outcome{Attempt: a.attempt, Status: webhook.Pending}
	failingSince := c.Webhook.FailingSince
	if failingSince.IsZero() {
		failingSince = now
	}
	switch {
	case a.attempt.Error == "":
		o.Status = webhook.Delivered
		return o
	case d.Position == 0:
		o.Status = webhook.Dead // a test is attempted once
		return o
	case a.attempt.HTTPStatus == http.StatusGone:
		o.Pause = "the receiver answered 410 Gone: it wants no more events"
		return o
	case now.Sub(failingSince) >= l.pauseAfter:
		o.Pause = fmt.Sprintf("every attempt since %s has failed, the last one with: %s",
			failingSince.UTC().Format(time.RFC3339), a.attempt.Error)
	}
	o.Retry = max(backoff.Jitter(backoff.Delay(firstRetry, maxRetry, d.Failures+1)), a.retryAfter)
	if now.Add(o.Retry).Sub(d.RetryFrom) > l.retryFor {
		o.Status, o.Retry = webhook.Dead, 0
		o.Attempt.Error = fmt.Sprintf("given up after %d attempts: %s", d.Attempts, a.attempt.Error)
	}
	return o
}

// disabled returns the audit entry of a pause by the platform.
func disabled(ctx context.Context, w webhook.Webhook, reason string, now time.Time) audit.Entry {
	e := audit.NewEntry(auth.WithActor(ctx, auth.System()), now, audit.WebhookDisable, w.Project, w.Name, reason)
	e.Detail, _ = json.Marshal(map[string]string{"id": w.ID}) //nolint:errchkjson // texts always encode
	return e
}

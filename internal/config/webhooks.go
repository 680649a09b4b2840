package config

import "time"

// Webhooks bounds the delivery of events to other systems.
type Webhooks struct {
	Timeout        time.Duration `yaml:"timeout" default:"15s" doc:"Timeout of one request to a receiver. Private addresses that receivers may have are those of calls.allow_private."`
	RetryFor       time.Duration `yaml:"retry_for" default:"72h" doc:"How long a delivery is retried, with delays from 5 seconds to 8 hours, before it is given up."`
	PauseAfter     time.Duration `yaml:"pause_after" default:"120h" doc:"How long every attempt of a webhook may fail before the webhook is paused."`
	KeepDeliveries time.Duration `yaml:"keep_deliveries" default:"720h" doc:"How long finished deliveries are retained."`
	MaxConcurrent  int           `yaml:"max_concurrent" default:"64" doc:"Requests to receivers in progress at once in one process. At most 4 of them are of one webhook, and one while its receiver fails."`
}

// Validate reports limits with which nothing could be delivered.
func (w Webhooks) Validate() Violations {
	var ps found
	atLeast(&ps, "timeout", w.Timeout, 10*time.Millisecond)
	atLeast(&ps, "retry_for", w.RetryFor, 0)
	atLeast(&ps, "pause_after", w.PauseAfter, time.Second)
	atLeast(&ps, "keep_deliveries", w.KeepDeliveries, time.Hour)
	atLeastNumber(&ps, "max_concurrent", w.MaxConcurrent, 1)
	return Violations(ps)
}

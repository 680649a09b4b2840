package event

import "encoding/json"

// The types of the events that report failures: that a run has failed or reached its timeout, and that a delivery is
// not attempted any more. They are published only where a webhook, a trigger or a listener may receive them. Triggers
// and listeners receive them only by filters that name the type; others, such as one without a type, do not match them.
const (
	RunFailed            = Own + "run.failed"
	RunTimedOut          = Own + "run.timed_out"
	DeliveryDeadLettered = Own + "delivery.dead_lettered"
)

// BatchEnded is the type of the events that report that a batch has ended, with each run that it started. They are
// published like those that report failures.
const BatchEnded = Own + "batch.ended"

// ReportsFailure reports whether a type is one of those that report failures.
func ReportsFailure(typ string) bool {
	return typ == RunFailed || typ == RunTimedOut || typ == DeliveryDeadLettered
}

// afterFailure is the extension attribute of an event that reports a failure which followed from another one: that of a
// run that such an event has started, or of its delivery.
const afterFailure = "afterfailure"

// WithAfterFailure marks an event that reports a failure as one that followed from another.
func (e Event) WithAfterFailure() Event {
	e.Extensions = json.RawMessage(`{"` + afterFailure + `":true}`)
	return e
}

// AfterFailure reports whether an event reports a failure that followed from another one. Such an event starts no
// workflow: otherwise a workflow that is started by failures, and fails, would start itself without end.
func (e Event) AfterFailure() bool {
	if !ReportsFailure(e.Type) || e.Extensions == nil {
		return false
	}
	var set struct {
		After bool `json:"afterfailure"`
	}
	return json.Unmarshal(e.Extensions, &set) == nil && set.After
}

// Package webhook sends events of a project to other systems: the webhooks, the deliveries that matching events become,
// and the service that changes both.
//
//	hooks := webhook.NewService(webhook.Options{Store: store, Keys: ring, …})
//	created, secret, err := hooks.Create(ctx, webhook.Webhook{Project: "shop", Name: "pager", …}, webhook.Target{URL: url})
//
// Each event that matches a webhook becomes one delivery, a row with an ID that is derived from both. Package sender
// matches events and sends deliveries, in every process. A delivery is sent at least once; all attempts carry its ID.
// The order of deliveries is not defined.
//
// Events are matched and sent as they are stored: values that are sensitive in a run are marks. The parts of a webhook
// that are secret are stored sealed.
package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/signalbox-dev/signalbox/dsl/eventfilter"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// Bounds of webhooks.
const (
	// MaxPerProject is the maximum number of webhooks of a project.
	MaxPerProject = 20
	// MaxTypes is the maximum number of types of a filter, MaxFilter the size of its conditions in bytes.
	MaxTypes  = 50
	MaxFilter = 16 << 10
	// MaxURL is the maximum length of an address, in bytes.
	MaxURL = 2048
	// MaxHistory is the number of attempts that a delivery keeps, the newest.
	MaxHistory = 20
	// MaxResponse is the number of bytes of a response that an attempt keeps.
	MaxResponse = 1 << 10
	// MaxKeepPrevious is the longest validity of a secret after its rotation.
	MaxKeepPrevious = 30 * 24 * time.Hour
)

// Test is the type of the event that a test sends.
const Test = event.Own + "webhook.test"

// Format is the form of a request's body.
type Format string

// The formats.
const (
	CloudEvents  Format = "cloudevents"
	Alertmanager Format = "alertmanager"
	PagerDuty    Format = "pagerduty"
	Slack        Format = "slack"
)

// Formats returns all formats.
func Formats() []Format { return []Format{CloudEvents, Alertmanager, PagerDuty, Slack} }

// Filter selects events. Its JSON form is stored.
type Filter struct {
	// Types are event types; one that ends with "*" matches the types that begin with the text before it.
	Types []string `json:"types"`
	// With is the given condition on attributes, as the "with" of a listen task; nil where there is none. Conditions is
	// its compiled form.
	With       json.RawMessage              `json:"with,omitempty"`
	Conditions map[string]eventfilter.Value `json:"conditions,omitempty"`
}

// Webhook is a receiver of a project's events.
type Webhook struct {
	ID, Project, Name string
	// URL is the address without its secret parts.
	URL    string
	Format Format
	Filter Filter
	// Sealed is the [Target], sealed.
	Sealed []byte
	// Since is the position after which events are delivered.
	Since int64
	// PausedAt is zero while the webhook is active.
	PausedAt    time.Time
	PauseReason string
	// FailingSince is the time of the first failed attempt since the last one that succeeded; zero after a success.
	FailingSince time.Time
	LastError    string
	// SucceededAt is the time of a recent success, up to some seconds before the last one.
	SucceededAt time.Time
	// PreviousUntil is the end of the validity of the previous secret; zero where there is none.
	PreviousUntil        time.Time
	Creator, Updater     string
	CreatedAt, UpdatedAt time.Time

	// Pending counts the unfinished deliveries, OldestPending is the creation of the oldest. They are set in results of
	// the service.
	Pending       int64
	OldestPending time.Time
}

// Paused reports whether the webhook is paused.
func (w Webhook) Paused() bool { return !w.PausedAt.IsZero() }

// Target is the secret part of a webhook.
type Target struct {
	URL string `json:"url"`
	// Secret and Previous are secrets as users see them. Previous is valid until PreviousUntil.
	Secret        string    `json:"secret"`
	Previous      string    `json:"previous,omitempty"`
	PreviousUntil time.Time `json:"previousUntil,omitzero"`
	// RoutingKey is the integration key of PagerDuty.
	RoutingKey string `json:"routingKey,omitempty"`
}

// Secrets returns the secrets that sign a request at a time, the current one first.
func (t Target) Secrets(now time.Time) []string {
	if t.Previous == "" || !now.Before(t.PreviousUntil) {
		return []string{t.Secret}
	}
	return []string{t.Secret, t.Previous}
}

// Status is the state of a delivery.
type Status string

// The states of a delivery.
const (
	Pending   Status = "pending"
	Delivered Status = "delivered"
	Dead      Status = "dead"
)

// DeliveryStatuses returns all states of a delivery.
func DeliveryStatuses() []Status { return []Status{Pending, Delivered, Dead} }

// Delivery is one event for one webhook.
type Delivery struct {
	// ID is the header webhook-id of all attempts.
	ID, Project string
	// Webhook is the ID of the webhook, WebhookName its name.
	Webhook, WebhookName string
	// Position is that of the event; 0 for a test.
	Position                        int64
	EventID, EventSource, EventType string
	Status                          Status
	Attempts                        int
	// NextAt is the time of the next attempt; zero when the delivery is finished or its webhook is paused.
	NextAt time.Time
	// RetryFrom is the beginning of the retry period, Failures the number of failed attempts in it.
	RetryFrom  time.Time
	Failures   int
	Reason     string
	HTTPStatus int
	CreatedAt  time.Time
	UpdatedAt  time.Time

	// Event is the event as CloudEvents JSON, History has the newest attempts, oldest first. Neither is in lists.
	Event   json.RawMessage
	History []Attempt
}

// Attempt is one request to a receiver. Its JSON form is stored.
type Attempt struct {
	Time       time.Time     `json:"time"`
	Duration   time.Duration `json:"duration"`
	HTTPStatus int           `json:"httpStatus,omitempty"`
	// Error is empty when the receiver accepted the event.
	Error string `json:"error,omitempty"`
	// Response is the beginning of the response, without credentials.
	Response string `json:"response,omitempty"`
}

// DeliveryID returns the ID of the delivery of the event at a position, the same in every process and at each
// repetition.
func DeliveryID(webhookID string, position int64) string {
	sum := sha256.Sum256([]byte(webhookID + " " + strconv.FormatInt(position, 10)))
	const enough = 16
	return "msg_" + hex.EncodeToString(sum[:enough])
}

// Claim is a delivery that a process sends. Its token distinguishes it from other claims of the delivery.
type Claim struct {
	Webhook  Webhook
	Delivery Delivery
	Token    string
}

// Outcome is the result of an attempt.
type Outcome struct {
	Attempt Attempt
	Status  Status
	// Retry is the delay of the next attempt of a pending delivery.
	Retry time.Duration
	// Pause is the reason to pause the webhook; empty to leave it active. Entry is the audit entry of the pause.
	Pause string
	Entry *audit.Entry
}

// Backlog summarises the deliveries of a project.
type Backlog struct {
	Project string
	// Pending counts the deliveries that are not finished, without those of paused webhooks; Oldest is the age of the
	// oldest.
	Pending int64
	Oldest  time.Duration
	// Failing counts the webhooks whose attempts fail, Paused those that were paused after failures.
	Failing, Paused int64
}

// Change is what becomes of a project's webhook.
type Change struct {
	// To is the new content; nil deletes the webhook with the ID.
	To *Webhook
	ID string
	// Head: deliveries begin after the project's newest event.
	Head bool
	// Stop takes the due times from unfinished deliveries, Resume makes them due.
	Stop, Resume bool
	Entry        audit.Entry
}

// DeliveryFilter selects the deliveries to list, newest first.
type DeliveryFilter struct {
	Webhook  string
	Statuses []Status
	After    *DeliveryCursor
	Limit    int
}

// DeliveryCursor is a position in a list of deliveries.
type DeliveryCursor struct {
	At time.Time
	ID string
}

// Store stores webhooks and deliveries. Missing projects are [apperror.NotFound].
type Store interface {
	// ListWebhooks returns the webhooks of a project, by name, with their unfinished deliveries.
	ListWebhooks(ctx context.Context, project string) ([]Webhook, error)
	// ReplaceSealed calls replace with each webhook of all projects, writes the sealed values that it returns, and returns
	// how many differ. A webhook that is changed meanwhile keeps what the change has sealed.
	ReplaceSealed(ctx context.Context, replace func(Webhook) (sealed []byte, err error)) (int, error)
	// ChangeWebhook calls change with the webhooks of a project in the transaction that then writes its result.
	ChangeWebhook(ctx context.Context, project string, change func([]Webhook) (Change, error)) error
	// InsertTest writes a delivery without an event of the inbox, claimed for the lease, and its audit entry.
	InsertTest(ctx context.Context, d Delivery, lease time.Duration, e audit.Entry) (Claim, error)
	ListDeliveries(ctx context.Context, f DeliveryFilter) ([]Delivery, error)
	// GetDelivery returns a delivery with its event and history.
	GetDelivery(ctx context.Context, project, id string) (Delivery, error)
	// Redeliver makes a delivery due, unless it is claimed, and then writes e.
	Redeliver(ctx context.Context, project, id string, e audit.Entry) error
}

// Queue is the part of the store that matches events and sends deliveries.
type Queue interface {
	// Unmatched returns projects that have an active webhook and events that are not matched.
	Unmatched(ctx context.Context) (projects []string, err error)
	// Match matches up to limit events of a project and commits their deliveries with the position of the last of them. It
	// returns the number of new deliveries, and whether the project has more events.
	Match(ctx context.Context, project string, limit int,
		matcher func([]Webhook) *Matcher) (made int, more bool, err error)
	// Waiting returns up to limit active webhooks with due deliveries, those that are due longest first.
	Waiting(ctx context.Context, limit int) (ids []string, err error)
	// Claim claims due deliveries of a webhook for the lease, so that no more than most of its deliveries are claimed at a
	// time; of a webhook whose last attempt failed, one. A claim that is not finished ends with the lease, and the
	// delivery is due again.
	Claim(ctx context.Context, id string, most int, lease time.Duration) ([]Claim, error)
	// Finish records the outcome of a claim. It changes nothing, and returns false, where the claim has ended.
	Finish(ctx context.Context, c Claim, o Outcome) (bool, error)
	// Backlogs returns the backlog of each project with a webhook.
	Backlogs(ctx context.Context) ([]Backlog, error)
}

package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/logger"
)

// Keys seals the secret parts of webhooks.
type Keys interface {
	Seal(plain []byte, about ...string) ([]byte, error)
	Open(sealed []byte, about ...string) ([]byte, error)
	// Seals reports whether values are to be sealed, Current whether a value was sealed with the active key.
	Seals() bool
	Current(sealed []byte) bool
}

// Sender sends a claimed delivery and records the outcome.
type Sender interface {
	Send(ctx context.Context, c Claim)
	// Wake makes the sender look for due deliveries.
	Wake()
}

// Options are the dependencies of the service.
type Options struct {
	Store  Store
	Keys   Keys
	Sender Sender
	// Permits reports whether requests to an address, an IP as text, are allowed.
	Permits func(address string) bool
	// TestLease is how long the delivery of a test is claimed: longer than one attempt takes.
	TestLease time.Duration
	Now       func() time.Time
}

// Service lists and changes webhooks, and lists and repeats their deliveries.
type Service struct{ o Options }

// NewService returns the service.
func NewService(o Options) *Service { return &Service{o} }

// List returns the webhooks of a project, by name.
func (s *Service) List(ctx context.Context, project string) ([]Webhook, error) {
	return s.o.Store.ListWebhooks(ctx, project)
}

// Get returns a webhook.
func (s *Service) Get(ctx context.Context, project, name string) (Webhook, error) {
	list, err := s.o.Store.ListWebhooks(ctx, project)
	if err != nil {
		return Webhook{}, err
	}
	return find(list, project, name)
}

// Create creates a webhook and returns it with its secret. Its deliveries begin after the project's newest event.
func (s *Service) Create(ctx context.Context, w Webhook, t Target) (Webhook, string, error) {
	if w.Format == "" {
		w.Format = CloudEvents
	}
	if w.Format == PagerDuty && t.URL == "" {
		t.URL = PagerDutyURL
	}
	if err := s.check(&w, t); err != nil {
		return w, "", err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return w, "", fmt.Errorf("make the ID of a webhook: %w", err)
	}
	actor, _ := auth.ActorFrom(ctx)
	w.ID, w.Creator, w.Updater, w.CreatedAt = id.String(), actor.Name, actor.Name, s.o.Now().Truncate(time.Microsecond)
	w.UpdatedAt = w.CreatedAt
	t.Secret = NewSecret()
	if err := s.seal(&w, t); err != nil {
		return w, "", err
	}
	err = s.o.Store.ChangeWebhook(ctx, w.Project, func(list []Webhook) (Change, error) {
		if slices.ContainsFunc(list, func(other Webhook) bool { return other.Name == w.Name }) {
			return Change{}, apperror.New(apperror.Exists, apperror.WebhookExists,
				"project %q has a webhook %q already: choose another name, or update that one",
				w.Project, w.Name).WithField("name", "is taken")
		}
		if len(list) >= MaxPerProject {
			return Change{}, apperror.New(apperror.Exhausted, apperror.TooManyWebhooks,
				"project %q has %d webhooks, the maximum: delete one first", w.Project, len(list))
		}
		return Change{To: &w, Head: true, Entry: s.entry(ctx, audit.WebhookCreate, w, "")}, nil
	})
	return w, t.Secret, err
}

// Update is what changes of a webhook; nil keeps the value.
type Update struct {
	URL, RoutingKey *string
	Filter          *Filter
}

// Update changes the settings of a webhook.
func (s *Service) Update(ctx context.Context, project, name string, u Update) (Webhook, error) {
	return s.change(ctx, project, name, func(w *Webhook) (Change, error) {
		t, err := s.Open(*w)
		if err != nil {
			return Change{}, err
		}
		if u.URL != nil {
			t.URL = *u.URL
		}
		if u.RoutingKey != nil {
			t.RoutingKey = *u.RoutingKey
		}
		if u.Filter != nil {
			w.Filter = *u.Filter
		}
		if err := s.check(w, t); err != nil {
			return Change{}, err
		}
		return Change{Entry: s.entry(ctx, audit.WebhookUpdate, *w, "")}, s.seal(w, t)
	})
}

// Pause stops a webhook; one that is paused stays as it is.
func (s *Service) Pause(ctx context.Context, project, name, reason string) (Webhook, error) {
	return s.change(ctx, project, name, func(w *Webhook) (Change, error) {
		actor, _ := auth.ActorFrom(ctx)
		if !w.Paused() {
			w.PausedAt, w.PauseReason = s.o.Now(), "paused by "+actor.Name
			if reason != "" {
				w.PauseReason += ": " + reason
			}
		}
		return Change{Stop: true, Entry: s.entry(ctx, audit.WebhookPause, *w, reason)}, nil
	})
}

// Unpause continues a webhook: with events that are accepted from then on, and with its unfinished deliveries.
func (s *Service) Unpause(ctx context.Context, project, name string) (Webhook, error) {
	w, err := s.change(ctx, project, name, func(w *Webhook) (Change, error) {
		c := Change{Head: w.Paused(), Resume: w.Paused(), Entry: s.entry(ctx, audit.WebhookUnpause, *w, "")}
		if w.Paused() {
			w.PausedAt, w.PauseReason, w.FailingSince = time.Time{}, "", time.Time{}
		}
		return c, nil
	})
	s.o.Sender.Wake()
	return w, err
}

// RotateSecret replaces the secret and returns the new one. The previous one is valid for a time.
func (s *Service) RotateSecret(ctx context.Context, project, name string,
	keep time.Duration) (w Webhook, secret string, err error) {
	if keep < 0 || keep > MaxKeepPrevious {
		return w, "", invalid("keep_previous", "must be 0s to 720h", "keep_previous is %v: give 0s to 720h", keep)
	}
	w, err = s.change(ctx, project, name, func(w *Webhook) (Change, error) {
		t, err := s.Open(*w)
		if err != nil {
			return Change{}, err
		}
		t.Previous, t.Secret, t.PreviousUntil = t.Secret, NewSecret(), s.o.Now().Add(keep).UTC()
		if keep == 0 {
			t.Previous, t.PreviousUntil = "", time.Time{}
		}
		w.PreviousUntil, secret = t.PreviousUntil, t.Secret
		return Change{Entry: s.entry(ctx, audit.WebhookRotateSecret, *w, "")}, s.seal(w, t)
	})
	return w, secret, err
}

// Delete deletes a webhook with its deliveries.
func (s *Service) Delete(ctx context.Context, project, name string) error {
	return s.o.Store.ChangeWebhook(ctx, project, func(list []Webhook) (Change, error) {
		w, err := find(list, project, name)
		return Change{ID: w.ID, Entry: s.entry(ctx, audit.WebhookDelete, w, "")}, err
	})
}

// change changes one webhook.
func (s *Service) change(ctx context.Context, project, name string,
	change func(w *Webhook) (Change, error)) (changed Webhook, err error) {
	err = s.o.Store.ChangeWebhook(ctx, project, func(list []Webhook) (Change, error) {
		w, err := find(list, project, name)
		if err != nil {
			return Change{}, err
		}
		actor, _ := auth.ActorFrom(ctx)
		w.Updater, w.UpdatedAt = actor.Name, s.o.Now().Truncate(time.Microsecond)
		c, err := change(&w)
		c.To, changed = &w, w
		return c, err
	})
	return changed, err
}

// Test sends a test event and returns its delivery. It is attempted once.
func (s *Service) Test(ctx context.Context, project, name string) (Delivery, error) {
	w, err := s.Get(ctx, project, name)
	if err != nil {
		return Delivery{}, err
	}
	if w.Paused() {
		return Delivery{}, apperror.New(apperror.Refused, apperror.WebhookPaused,
			"webhook %q is paused (%s): unpause it first", w.Name, w.PauseReason)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Delivery{}, fmt.Errorf("make the ID of a test: %w", err)
	}
	actor, _ := auth.ActorFrom(ctx)
	d, err := testDelivery(w, id.String(), actor.Name, s.o.Now())
	if err != nil {
		return Delivery{}, err
	}
	claim, err := s.o.Store.InsertTest(ctx, d, s.o.TestLease, s.entry(ctx, audit.WebhookTest, w, ""))
	if err != nil {
		return Delivery{}, err
	}
	s.o.Sender.Send(ctx, claim)
	return s.o.Store.GetDelivery(ctx, project, d.ID)
}

// Deliveries lists the deliveries of a webhook, newest first.
func (s *Service) Deliveries(ctx context.Context, project, name string, f DeliveryFilter) ([]Delivery, error) {
	for _, status := range f.Statuses {
		if !slices.Contains([]Status{Pending, Delivered, Dead}, status) {
			return nil, invalid("statuses", "unknown status", "delivery status %q is not one of pending, delivered, dead",
				status)
		}
	}
	w, err := s.Get(ctx, project, name)
	if err != nil {
		return nil, err
	}
	f.Webhook = w.ID
	list, err := s.o.Store.ListDeliveries(ctx, f)
	for i := range list {
		list[i].WebhookName = w.Name
	}
	return list, err
}

// Delivery returns a delivery with its event and attempts.
func (s *Service) Delivery(ctx context.Context, project, id string) (Delivery, error) {
	return s.o.Store.GetDelivery(ctx, project, id)
}

// Redeliver makes a delivery due at once, in whatever state it is, unless an attempt is in progress.
func (s *Service) Redeliver(ctx context.Context, project, id, reason string) (Delivery, error) {
	if err := s.o.Store.Redeliver(ctx, project, id,
		audit.NewEntry(ctx, s.o.Now(), audit.WebhookRedeliver, project, id, reason)); err != nil {
		return Delivery{}, err
	}
	s.o.Sender.Wake()
	return s.o.Store.GetDelivery(ctx, project, id)
}

// Open returns the secret part of a webhook.
func (s *Service) Open(w Webhook) (Target, error) { return Open(s.o.Keys, w) }

// Open returns the secret part of a webhook.
func Open(keys Keys, w Webhook) (t Target, err error) {
	plain, err := keys.Open(w.Sealed, "webhook", w.Project, w.ID)
	if err == nil {
		err = json.Unmarshal(plain, &t)
	}
	if err != nil {
		return t, fmt.Errorf("open the secrets of webhook %q: %w", w.Name, err)
	}
	return t, nil
}

func (s *Service) seal(w *Webhook, t Target) error {
	plain, err := json.Marshal(t) //nolint:gosec // it is sealed below
	if err != nil {
		return fmt.Errorf("encode the secrets of webhook %q: %w", w.Name, err)
	}
	w.Sealed, err = s.o.Keys.Seal(plain, "webhook", w.Project, w.ID)
	return err
}

// Reseal seals the secret parts with the active key that another key has sealed, so that the other one is not needed
// for them any more. A part that does not open stays as it is.
func (s *Service) Reseal(ctx context.Context) error {
	if !s.o.Keys.Seals() {
		return nil
	}
	n, err := s.o.Store.ReplaceSealed(ctx, func(w Webhook) ([]byte, error) {
		if s.o.Keys.Current(w.Sealed) {
			return w.Sealed, nil
		}
		t, err := s.Open(w)
		if err != nil {
			logger.FromContext(ctx).WarnContext(ctx, "The secrets of a webhook cannot be sealed with the active key",
				"project", w.Project, "webhook", w.Name, "error", err)
			return w.Sealed, nil
		}
		err = s.seal(&w, t)
		return w.Sealed, err
	})
	if n > 0 {
		logger.FromContext(ctx).InfoContext(ctx, "Sealed the secrets of webhooks with the active key", "count", n)
	}
	return err
}

func (s *Service) entry(ctx context.Context, action string, w Webhook, reason string) audit.Entry {
	e := audit.NewEntry(ctx, s.o.Now(), action, w.Project, w.Name, reason)
	e.Detail, _ = json.Marshal( //nolint:errchkjson // texts always encode
		map[string]any{"id": w.ID, "url": w.URL, "format": w.Format,
			"types": w.Filter.Types})
	return e
}

func find(list []Webhook, project, name string) (Webhook, error) {
	if i := slices.IndexFunc(list, func(w Webhook) bool { return w.Name == name }); i >= 0 {
		return list[i], nil
	}
	return Webhook{}, apperror.New(apperror.NotFound, apperror.WebhookNotFound,
		"webhook %q does not exist in project %q: `signalbox webhook list` shows those that do", name, project)
}

// NoDelivery returns the error for a delivery that does not exist.
func NoDelivery(project, id string) error {
	return apperror.New(apperror.NotFound, apperror.DeliveryNotFound,
		"delivery %q does not exist in project %q: `signalbox webhook deliveries NAME` shows those that do", id, project)
}

func invalid(field, violation, format string, args ...any) error {
	return apperror.New(apperror.Invalid, apperror.InvalidArgument, format, args...).WithField(field, "%s", violation)
}

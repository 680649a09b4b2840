package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/netguard"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/sealed/sealedtest"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
	"github.com/signalbox-dev/signalbox/internal/webhook"
	"github.com/signalbox-dev/signalbox/internal/webhook/sender"
)

const here = project.Default

// platform is a service on a database, with a sender and a receiver.
type platform struct {
	*webhook.Service
	store *store.Store
	keys  *keyring.Ring
	now   time.Time
	woken int

	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
	url      string
}

// sending is a sender without its loops, which counts what wakes it.
type sending struct {
	*sender.Sender
	p *platform
}

func (s sending) Wake() { s.p.woken++ }

type counted struct{}

func (counted) Attempted(context.Context, string) {}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Driver: store.SQLite, DSN: storetest.SQLite(t), CallTimeout: time.Minute})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, s.Stop(context.WithoutCancel(t.Context()))) })
	p := &platform{store: s, keys: keyring.Random("k1"), now: time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)}
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.requests, p.bodies = append(p.requests, r), append(p.bodies, string(body))
	}))
	t.Cleanup(receiver.Close)
	p.url = receiver.URL
	p.use(p.keys)
	return p
}

// use replaces the service by one with other keys.
func (p *platform) use(keys *keyring.Ring) {
	guard, now := netguard.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}), func() time.Time { return p.now }
	s := sender.New(sender.Options{
		Queue: p.store.Webhooks(), Keys: keys, Guard: guard, Timeout: time.Minute, RetryFor: time.Hour, PauseAfter: time.Hour,
		MaxConcurrent: 1,
		Metrics:       counted{}, Now: now,
	})
	p.Service = webhook.NewService(webhook.Options{
		Store: p.store.Webhooks(), Keys: keys, Sender: sending{s, p}, TestLease: time.Minute, Now: now,
		Permits: func(host string) bool {
			addr, err := netip.ParseAddr(host)
			return err != nil || guard.Permits(addr)
		},
	})
}

func (p *platform) as(t *testing.T, name string) context.Context {
	t.Helper()
	return auth.WithActor(t.Context(), auth.Actor{Kind: "token", Name: name})
}

// create creates a webhook for all events of the receiver.
func (p *platform) create(t *testing.T, name string) (webhook.Webhook, string) {
	t.Helper()
	w, secret, err := p.Create(p.as(t, "ada"),
		webhook.Webhook{Project: here, Name: name, Filter: webhook.Filter{Types: []string{"*"}}},
		webhook.Target{URL: p.url + "/hook?token=s3cret"})
	require.NoError(t, err)
	return w, secret
}

// audited returns the newest entry of the audit log.
func (p *platform) audited(t *testing.T) audit.Entry {
	t.Helper()
	list, err := p.store.ListAudit(t.Context(), audit.Filter{Limit: 1})
	require.NoError(t, err)
	require.Len(t, list, 1)
	return list[0]
}

func requireReason(t *testing.T, err error, reason, text string) {
	t.Helper()
	require.ErrorContains(t, err, text)
	failed, is := errors.AsType[*apperror.Error](err)
	require.True(t, is, "%v", err)
	require.Equal(t, reason, failed.Reason, "%v", err)
}

// TestInvalidWebhooksAreRefused has one setting per case that differs from a valid webhook.
func TestInvalidWebhooksAreRefused(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	types := func(n int) []string { return strings.Split(strings.Repeat("a,", n-1)+"a", ",") }
	for name, c := range map[string]struct {
		change func(w *webhook.Webhook, t *webhook.Target)
		field  string // empty: accepted
	}{
		"name":   {func(w *webhook.Webhook, _ *webhook.Target) { w.Name = "-a" }, "name"},
		"format": {func(w *webhook.Webhook, _ *webhook.Target) { w.Format = "xml" }, "format"},
		"pagerduty without key": {func(w *webhook.Webhook, _ *webhook.Target) {
			w.Format = webhook.PagerDuty
		}, "routing_key"},
		"pagerduty": {func(w *webhook.Webhook, t *webhook.Target) {
			w.Format, t.RoutingKey = webhook.PagerDuty, "k"
		}, ""},
		"key without pagerduty": {func(_ *webhook.Webhook, t *webhook.Target) { t.RoutingKey = "k" }, "routing_key"},
		"no address":            {func(_ *webhook.Webhook, t *webhook.Target) { t.URL = "" }, "url"},
		"not an address":        {func(_ *webhook.Webhook, t *webhook.Target) { t.URL = "https://[" }, "url"},
		"address with space":    {func(_ *webhook.Webhook, t *webhook.Target) { t.URL = "https://example.com/a b" }, "url"},
		"address with control": {func(_ *webhook.Webhook, t *webhook.Target) {
			t.URL = "https://example.com/a\u0085b"
		}, "url"},
		"longest address": {func(_ *webhook.Webhook, t *webhook.Target) {
			t.URL = "https://e/" + strings.Repeat("a", webhook.MaxURL-10)
		}, ""},
		"address too long": {func(_ *webhook.Webhook, t *webhook.Target) {
			t.URL = "https://e/" + strings.Repeat("a", webhook.MaxURL-9)
		}, "url"},
		"scheme":     {func(_ *webhook.Webhook, t *webhook.Target) { t.URL = "ftp://example.com/" }, "url"},
		"http":       {func(_ *webhook.Webhook, t *webhook.Target) { t.URL = "http://example.com/" }, ""},
		"no host":    {func(_ *webhook.Webhook, t *webhook.Target) { t.URL = "https:///path" }, "url"},
		"opaque":     {func(_ *webhook.Webhook, t *webhook.Target) { t.URL = "https:example.com" }, "url"},
		"fragment":   {func(_ *webhook.Webhook, t *webhook.Target) { t.URL = "https://example.com/#a" }, "url"},
		"private":    {func(_ *webhook.Webhook, t *webhook.Target) { t.URL = "https://10.0.0.1/" }, "url"},
		"no types":   {func(w *webhook.Webhook, _ *webhook.Target) { w.Filter.Types = nil }, "filter.types"},
		"most types": {func(w *webhook.Webhook, _ *webhook.Target) { w.Filter.Types = types(webhook.MaxTypes) }, ""},
		"too many types": {func(w *webhook.Webhook, _ *webhook.Target) {
			w.Filter.Types = types(webhook.MaxTypes + 1)
		}, "filter.types"},
		"empty type": {func(w *webhook.Webhook, _ *webhook.Target) { w.Filter.Types = []string{"a", ""} }, "filter.types[1]"},
		"longest type": {func(w *webhook.Webhook, _ *webhook.Target) {
			w.Filter.Types = []string{strings.Repeat("a", event.MaxAttribute)}
		}, ""},
		"type too long": {func(w *webhook.Webhook, _ *webhook.Target) {
			w.Filter.Types = []string{strings.Repeat("a", event.MaxAttribute+1)}
		}, "filter.types[0]"},
		"star inside of a type": {func(w *webhook.Webhook, _ *webhook.Target) {
			w.Filter.Types = []string{"a*b"}
		}, "filter.types[0]"},
		"two stars": {func(w *webhook.Webhook, _ *webhook.Target) {
			w.Filter.Types = []string{"a**"}
		}, "filter.types[0]"},
		"no conditions": {func(w *webhook.Webhook, _ *webhook.Target) {
			w.Filter.With = json.RawMessage(" null ")
		}, ""},
		"conditions": {func(w *webhook.Webhook, _ *webhook.Target) {
			w.Filter.With = json.RawMessage(`{"subject": "s"}`)
		}, ""},
		"conditions not allowed": {func(w *webhook.Webhook, _ *webhook.Target) {
			w.Filter.With = json.RawMessage(`{"time": "${"}`)
		}, "filter.with/time"},
		"condition with a warning": {func(w *webhook.Webhook, _ *webhook.Target) {
			w.Filter.With = json.RawMessage(`{"subject": "^(a"}`)
		}, ""},
		"condition with a warning, another one not allowed": {func(w *webhook.Webhook, _ *webhook.Target) {
			w.Filter.With = json.RawMessage(`{"subject": "^(a", "time": "${"}`)
		}, "filter.with/time"},
		"largest conditions": {func(w *webhook.Webhook, _ *webhook.Target) {
			w.Filter.With = json.RawMessage(`{"subject": "` + strings.Repeat("a", webhook.MaxFilter-len(`{"subject": ""}`)) + `"}`)
		}, ""},
		"conditions one byte too large": {func(w *webhook.Webhook, _ *webhook.Target) {
			w.Filter.With = json.RawMessage(`{"subject": "` + strings.Repeat("a", webhook.MaxFilter-len(`{"subject": ""}`)+1) + `"}`)
		}, "filter.with"},
	} {
		w := webhook.Webhook{Project: here, Name: "hook", Format: webhook.CloudEvents,
			Filter: webhook.Filter{Types: []string{"a"}}}
		target := webhook.Target{URL: "https://example.com/"}
		c.change(&w, &target)
		w, _, err := p.Create(p.as(t, "ada"), w, target)
		if c.field == "" {
			require.NoError(t, err, name)
			require.NoError(t, p.Delete(p.as(t, "ada"), here, w.Name), name)
			continue
		}
		requireReason(t, err, apperror.InvalidArgument, "")
		failed, _ := errors.AsType[*apperror.Error](err)
		require.Equal(t, c.field, failed.Fields[0].Path, "%s: %v", name, err)
		require.NotContains(t, err.Error(), target.URL+"/", name)
	}
}

// TestCreatedWebhookIsStored verifies what follows from a creation, and its limits.
func TestCreatedWebhookIsStored(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	created, secret := p.create(t, "hook")
	got, err := p.Get(t.Context(), here, "hook")
	require.NoError(t, err)
	require.Equal(t, created.ID, got.ID)
	require.Equal(t, webhook.CloudEvents, got.Format)
	require.Equal(t, p.url+"/hook?token=…", got.URL)
	require.Equal(t, []any{"ada", "ada", p.now, p.now},
		[]any{got.Creator, got.Updater, got.CreatedAt.UTC(), got.UpdatedAt.UTC()})
	require.NotContains(t, string(got.Sealed), secret)
	target, err := p.Open(got)
	require.NoError(t, err)
	require.Equal(t, webhook.Target{URL: p.url + "/hook?token=s3cret", Secret: secret}, target)
	require.Equal(t, audit.WebhookCreate, p.audited(t).Action)
	require.JSONEq(t, `{"id": "`+got.ID+`", "url": "`+got.URL+`", "format": "cloudevents", "types": ["*"]}`,
		string(p.audited(t).Detail))

	for format, url := range map[webhook.Format]string{
		webhook.PagerDuty: webhook.PagerDutyURL, webhook.Slack: "https://hooks.slack.com/…"} {
		target := webhook.Target{
			URL: map[webhook.Format]string{webhook.Slack: "https://ada:pw@hooks.slack.com/T1/B1?a=b"}[format]}
		if format == webhook.PagerDuty {
			target.RoutingKey = "key"
		}
		w, _, err := p.Create(p.as(t, "ada"),
			webhook.Webhook{Project: here, Name: string(format), Format: format, Filter: got.Filter}, target)
		require.NoError(t, err)
		require.Equal(t, url, w.URL)
	}
	w, _, err := p.Create(p.as(t, "ada"), webhook.Webhook{Project: here, Name: "login", Filter: got.Filter},
		webhook.Target{URL: "https://ada:pw@example.com/p?a=1&b"})
	require.NoError(t, err)
	require.Equal(t, "https://example.com/p?a=…&b=…", w.URL)

	_, _, err = p.Create(p.as(t, "ada"), webhook.Webhook{Project: here, Name: "hook", Filter: got.Filter},
		webhook.Target{URL: p.url})
	requireReason(t, err, apperror.WebhookExists, `project "default" has a webhook "hook" already`)
	for n := 4; n < webhook.MaxPerProject; n++ {
		p.create(t, "n"+string(rune('a'+n)))
	}
	_, _, err = p.Create(p.as(t, "ada"), webhook.Webhook{Project: here, Name: "more", Filter: got.Filter},
		webhook.Target{URL: p.url})
	requireReason(t, err, apperror.TooManyWebhooks, "has 20 webhooks, the maximum")
	_, err = p.Get(t.Context(), here, "none")
	requireReason(t, err, apperror.WebhookNotFound, `webhook "none" does not exist`)
	list, err := p.List(t.Context(), here)
	require.NoError(t, err)
	require.Len(t, list, webhook.MaxPerProject)
	_, err = p.Get(t.Context(), "none", "hook")
	requireReason(t, err, apperror.ProjectNotFound, "")
}

// TestUpdateChangesWhatIsGiven verifies that the other settings stay.
func TestUpdateChangesWhatIsGiven(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	created, secret := p.create(t, "hook")
	p.now = p.now.Add(time.Hour)
	changed, err := p.Update(p.as(t, "bob"), here, "hook", webhook.Update{URL: new(p.url + "/other")})
	require.NoError(t, err)
	require.Equal(t, p.url+"/other", changed.URL)
	require.Equal(t, []any{"ada", "bob", created.Filter, p.now},
		[]any{changed.Creator, changed.Updater, changed.Filter, changed.UpdatedAt})
	target, err := p.Open(changed)
	require.NoError(t, err)
	require.Equal(t, webhook.Target{URL: p.url + "/other", Secret: secret}, target)
	require.Equal(t, audit.WebhookUpdate, p.audited(t).Action)

	changed, err = p.Update(p.as(t, "bob"), here, "hook",
		webhook.Update{Filter: &webhook.Filter{Types: []string{"b"}, With: json.RawMessage(`{"subject": "s"}`)}})
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, changed.Filter.Types)
	require.Contains(t, changed.Filter.Conditions, "subject")
	require.Equal(t, p.url+"/other", changed.URL)
	_, err = p.Update(p.as(t, "bob"), here, "hook", webhook.Update{RoutingKey: new("k")})
	requireReason(t, err, apperror.InvalidArgument, "routing_key is for the format pagerduty only")
	_, err = p.Update(p.as(t, "bob"), here, "none", webhook.Update{})
	requireReason(t, err, apperror.WebhookNotFound, "none")
	stored, err := p.Get(t.Context(), here, "hook")
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, stored.Filter.Types, "a refused change changes nothing")
}

// TestPauseKeepsItsReason verifies pause and unpause, and that a second one changes nothing.
func TestPauseKeepsItsReason(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	p.create(t, "hook")
	began := p.now
	paused, err := p.Pause(p.as(t, "ada"), here, "hook", "maintenance")
	require.NoError(t, err)
	require.Equal(t, "paused by ada: maintenance", paused.PauseReason)
	require.Equal(t, "maintenance", p.audited(t).Reason)
	p.now = p.now.Add(time.Hour)
	paused, err = p.Pause(p.as(t, "bob"), here, "hook", "")
	require.NoError(t, err)
	require.Equal(t, []any{"paused by ada: maintenance", began}, []any{paused.PauseReason, paused.PausedAt.UTC()})
	_, err = p.Test(p.as(t, "ada"), here, "hook")
	requireReason(t, err, apperror.WebhookPaused, "is paused (paused by ada: maintenance): unpause it first")

	require.Zero(t, p.woken)
	active, err := p.Unpause(p.as(t, "ada"), here, "hook")
	require.NoError(t, err)
	require.Equal(t, []any{false, "", 1}, []any{active.Paused(), active.PauseReason, p.woken})
	require.Equal(t, audit.WebhookUnpause, p.audited(t).Action)
	paused, err = p.Pause(p.as(t, "bob"), here, "hook", "")
	require.NoError(t, err)
	require.Equal(t, "paused by bob", paused.PauseReason)
}

// TestEventsAreDeliveredAsLongAsAWebhookIsActive verifies from which event on a webhook has deliveries: its creation,
// and the end of a pause.
func TestEventsAreDeliveredAsLongAsAWebhookIsActive(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	publish := func(id string) {
		_, _, err := sealedtest.NewSealer(t).Events(p.store.Events(), event.Earlier{}).Publish(t.Context(), here,
			[]event.Event{{ID: id, Source: "/test", Type: "a"}})
		require.NoError(t, err)
		for more := true; more; {
			_, more, err = p.store.Webhooks().Match(t.Context(), here, 10, webhook.NewMatcher)
			require.NoError(t, err)
		}
	}
	publish("before")
	p.create(t, "hook")
	publish("one")
	_, err := p.Unpause(p.as(t, "ada"), here, "hook") // of an active one: nothing is left out
	require.NoError(t, err)
	_, err = p.Pause(p.as(t, "ada"), here, "hook", "")
	require.NoError(t, err)
	publish("paused")
	list, err := p.Deliveries(t.Context(), here, "hook", webhook.DeliveryFilter{Limit: 10})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Zero(t, list[0].NextAt, "a delivery of a paused webhook is not due")
	_, err = p.Unpause(p.as(t, "ada"), here, "hook")
	require.NoError(t, err)
	publish("two")
	list, err = p.Deliveries(t.Context(), here, "hook", webhook.DeliveryFilter{Limit: 10})
	require.NoError(t, err)
	require.Len(t, list, 2)
	for i, id := range []string{"two", "one"} {
		require.Equal(t, []any{id, "hook", webhook.Pending}, []any{list[i].EventID, list[i].WebhookName, list[i].Status})
		require.NotZero(t, list[i].NextAt)
	}
	list, err = p.Deliveries(t.Context(), here, "hook",
		webhook.DeliveryFilter{Limit: 10, Statuses: []webhook.Status{webhook.Dead, webhook.Delivered}})
	require.NoError(t, err)
	require.Empty(t, list)
	_, err = p.Deliveries(t.Context(), here, "hook", webhook.DeliveryFilter{Limit: 10, Statuses: []webhook.Status{"lost"}})
	requireReason(t, err, apperror.InvalidArgument, `delivery status "lost" is not one of pending, delivered, dead`)
	_, err = p.Deliveries(t.Context(), here, "none", webhook.DeliveryFilter{Limit: 10})
	requireReason(t, err, apperror.WebhookNotFound, "none")

	require.NoError(t, p.Delete(p.as(t, "ada"), here, "hook"))
	require.Equal(t, audit.WebhookDelete, p.audited(t).Action)
	requireReason(t, p.Delete(p.as(t, "ada"), here, "hook"), apperror.WebhookNotFound, "hook")
}

// TestTestIsSentAndRepeated sends a test to the receiver, and its delivery again.
func TestTestIsSentAndRepeated(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	w, secret := p.create(t, "hook")
	d, err := p.Test(p.as(t, "ada"), here, "hook")
	require.NoError(t, err)
	require.Equal(t, []any{webhook.Delivered, 1, http.StatusOK, webhook.Test, int64(0)},
		[]any{d.Status, d.Attempts, d.HTTPStatus, d.EventType, d.Position})
	require.Equal(t, audit.WebhookTest, p.audited(t).Action)
	p.mu.Lock()
	require.Len(t, p.requests, 1)
	r, body := p.requests[0], p.bodies[0]
	p.mu.Unlock()
	require.Equal(t, "token=s3cret", r.URL.RawQuery)
	require.Equal(t, d.ID, r.Header.Get("Webhook-Id"))
	signature, err := webhook.Signature([]string{secret}, d.ID, p.now, []byte(body))
	require.NoError(t, err)
	require.Equal(t, signature, r.Header.Get("Webhook-Signature"))
	var sent map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &sent))
	require.Equal(t, map[string]any{"project": here, "webhook": "hook", "actor": "ada"}, sent["data"])
	require.Equal(t, "/projects/default/webhooks/hook", sent["source"])

	again, err := p.Redeliver(p.as(t, "ada"), here, d.ID, "lost")
	require.NoError(t, err)
	require.Equal(t, []any{webhook.Pending, 1}, []any{again.Status, p.woken})
	require.Equal(t, []any{audit.WebhookRedeliver, "lost", d.ID},
		[]any{p.audited(t).Action, p.audited(t).Reason, p.audited(t).Subject})
	_, err = p.Redeliver(p.as(t, "ada"), here, "msg_none", "")
	requireReason(t, err, apperror.DeliveryNotFound, `delivery "msg_none" does not exist`)
	_, err = p.Delivery(t.Context(), here, "msg_none")
	requireReason(t, err, apperror.DeliveryNotFound, `delivery "msg_none" does not exist`)
	got, err := p.Delivery(t.Context(), here, d.ID)
	require.NoError(t, err)
	require.Equal(t, w.ID, got.Webhook)
	_, err = p.Test(p.as(t, "ada"), here, "none")
	requireReason(t, err, apperror.WebhookNotFound, "none")
}

// TestPreviousSecretStaysValid verifies both secrets around the end of the time that the rotation gives the previous
// one.
func TestPreviousSecretStaysValid(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	_, first := p.create(t, "hook")
	w, second, err := p.RotateSecret(p.as(t, "ada"), here, "hook", time.Hour)
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	require.Equal(t, p.now.Add(time.Hour), w.PreviousUntil)
	require.Equal(t, audit.WebhookRotateSecret, p.audited(t).Action)
	target, err := p.Open(w)
	require.NoError(t, err)
	require.Equal(t, []string{second, first}, target.Secrets(p.now.Add(time.Hour-1)))
	require.Equal(t, []string{second}, target.Secrets(p.now.Add(time.Hour)))

	w, third, err := p.RotateSecret(p.as(t, "ada"), here, "hook", 0)
	require.NoError(t, err)
	require.Zero(t, w.PreviousUntil)
	target, err = p.Open(w)
	require.NoError(t, err)
	require.Equal(t, []string{third}, target.Secrets(p.now))
	_, _, err = p.RotateSecret(p.as(t, "ada"), here, "hook", webhook.MaxKeepPrevious)
	require.NoError(t, err)
	for _, keep := range []time.Duration{-1, webhook.MaxKeepPrevious + 1} {
		_, _, err = p.RotateSecret(p.as(t, "ada"), here, "hook", keep)
		requireReason(t, err, apperror.InvalidArgument, "give 0s to 720h")
	}
}

// TestSecretsAreSealedWithTheActiveKey has a webhook whose secrets another key has sealed, and one whose key is
// missing.
func TestSecretsAreSealedWithTheActiveKey(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	_, secret := p.create(t, "hook")
	p.use(keyring.Random("lost"))
	p.create(t, "lost")
	old, active := make([]byte, keyring.KeySize), make([]byte, keyring.KeySize)
	old[0], active[0] = 1, 2
	ring := func(active string, keys map[string][]byte) *keyring.Ring {
		r, err := keyring.New(active, keys)
		require.NoError(t, err)
		return r
	}
	p.use(ring("old", map[string][]byte{"old": old}))
	_, kept := p.create(t, "kept")
	both := ring("new", map[string][]byte{"old": old, "new": active})
	p.use(both.Opening())
	require.NoError(t, p.Reseal(t.Context()))
	sealed := func(name string) webhook.Webhook {
		w, err := p.Get(t.Context(), here, name)
		require.NoError(t, err)
		return w
	}
	require.False(t, both.Current(sealed("kept").Sealed), "a process that only opens seals nothing")
	lost := sealed("lost").Sealed
	p.use(both)
	require.NoError(t, p.Reseal(t.Context()))
	require.True(t, both.Current(sealed("kept").Sealed))
	require.Equal(t, lost, sealed("lost").Sealed)
	target, err := p.Open(sealed("kept"))
	require.NoError(t, err)
	require.Equal(t, kept, target.Secret)
	before := sealed("kept").Sealed
	require.NoError(t, p.Reseal(t.Context()))
	require.Equal(t, before, sealed("kept").Sealed, "what the active key has sealed stays")
	_, err = p.Open(sealed("lost"))
	require.ErrorContains(t, err, `open the secrets of webhook "lost"`)
	p.use(p.keys)
	target, err = p.Open(sealed("hook"))
	require.NoError(t, err)
	require.Equal(t, secret, target.Secret)
}

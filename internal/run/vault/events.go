package vault

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

// Events is a store of events into which nothing sensitive is written. Those who match and deliver get from it what was published;
// an event whose original does not open keeps its marks and its [event.Event.Original], so that one lost key holds nothing else up.
type Events struct {
	EventStore

	vault *Vault

	mu sync.Mutex
	// batches are what was read last of each project, to be matched.
	batches map[string]*matched
}

var _ event.Store = (*Events)(nil)

// Events returns the store with marks and sealed originals in what is written through it.
func (v *Vault) Events(below EventStore) *Events {
	return &Events{EventStore: below, vault: v, batches: map[string]*matched{}}
}

// Publish implements [event.Store].
func (s *Events) Publish(ctx context.Context, project string, list []event.Event) ([]event.Accepted, bool, error) {
	hidden, err := s.vault.hideEvents(ctx, project, list)
	if err != nil {
		return nil, false, err
	}
	return s.EventStore.Publish(ctx, project, allMarked(hidden))
}

// RecordOwner implements [event.Store].
func (s *Events) RecordOwner(ctx context.Context, c event.OwnerChange, tell event.Event, e audit.Entry) error {
	hidden, err := s.vault.hideEvents(ctx, c.Name.Project, []event.Event{tell})
	if err != nil {
		return err
	}
	return s.EventStore.RecordOwner(ctx, c, marked(hidden[0]), e)
}

// Due implements [event.Rows].
func (s *Events) Due(
	ctx context.Context, project string, owner inbox.Owner, limit int, visible time.Duration,
) ([]event.Delivery, error) {
	due, err := s.EventStore.Due(ctx, project, owner, limit, visible)
	for _, d := range due {
		s.vault.openEvents(d.Events)
	}
	return due, err
}

// Settle implements [event.Store]. Why a delivery failed may quote its events, and the run that it is for.
func (s *Events) Settle(ctx context.Context, project string, owner inbox.Owner, settled []inbox.Settled) error {
	var ids []string
	for _, v := range settled {
		if v.Outcome.Reason != "" {
			ids = append(ids, v.ID)
		}
	}
	texts := map[string]func(string) string{}
	if len(ids) > 0 && s.vault.keys.Seals() {
		deliveries, err := s.FindDeliveries(ctx, project, ids)
		if err != nil {
			return err
		}
		if texts, err = s.vault.deliveryTexts(ctx, deliveries); err != nil {
			return err
		}
	}
	hidden := slices.Clone(settled)
	for i := range hidden {
		if text := texts[hidden[i].ID]; text != nil {
			hidden[i].Outcome.Reason = text(hidden[i].Outcome.Reason)
		}
	}
	return s.EventStore.Settle(ctx, project, owner, allMarked(hidden))
}

// deliveryTexts returns by the IDs of deliveries what puts marks into texts about them. An event that does not open was not delivered, so
// that no text quotes it.
func (v *Vault) deliveryTexts(ctx context.Context, deliveries []event.Delivery) (map[string]func(string) string, error) {
	var runs []string
	for _, d := range deliveries {
		runs = append(runs, d.RunID)
		v.openEvents(d.Events)
	}
	known, err := v.rereadAll(ctx, runs)
	if err != nil {
		return nil, err
	}
	texts := make(map[string]func(string) string, len(deliveries))
	for _, d := range deliveries {
		var taint redact.Taint
		for _, e := range d.Events {
			taint.Add(e.Sensitive...)
		}
		texts[d.ID] = func(text string) string {
			shown, _ := taint.Text(text)
			return known[d.RunID].says(shown)
		}
	}
	return texts, nil
}

// sealedEvent is what an [event.Original] holds. Bytes stay as they are, which JSON in JSON would not. Sensitive are the texts that the
// marks stand for, which those who get the event are to hide.
type sealedEvent struct {
	Subject    string `json:"subject,omitempty"`
	Extensions []byte `json:"extensions,omitempty"`
	Data       []byte `json:"data,omitempty"`

	Sensitive []string `json:"sensitive,omitempty"`
}

// aboutEvent is what an original is authenticated with: it has no position yet when it is sealed.
func aboutEvent(project string, e event.Event) []string {
	return []string{"event", project, e.Source, e.ID}
}

// emitted is the place of what a run emits: what is sensitive wherever it is passed on is so in it.
var emitted = redact.Place{Pointer: "event"}

// hideEvents leaves the events as they are: whoever publishes them may do so again.
func (v *Vault) hideEvents(ctx context.Context, project string, list []event.Event) ([]event.Event, error) {
	if !v.keys.Seals() {
		return list, nil
	}
	var ids []string
	for _, e := range list {
		if e.RunID != "" {
			ids = append(ids, e.RunID)
		}
	}
	known, err := v.secrecies(ctx, ids)
	if err != nil {
		return nil, err
	}
	hidden := slices.Clone(list)
	for i, given := range list {
		s := known[given.RunID]
		if s == nil {
			s = &secrecy{policy: &redact.Policy{}}
		}
		found, marked := s.event(&hidden[i])
		hidden[i].Sensitive = nil
		if !marked {
			continue
		}
		original := sealedEvent{Subject: given.Subject, Extensions: given.Extensions, Data: given.Data, Sensitive: found}
		plain, err := json.Marshal(original)
		if err != nil {
			return nil, fmt.Errorf("sealing event %q: %w", hidden[i].ID, err)
		}
		sealed, err := v.keys.Seal(plain, aboutEvent(project, hidden[i])...)
		if err != nil {
			return nil, fmt.Errorf("sealing event %q: %w", hidden[i].ID, err)
		}
		hidden[i].Original = &event.Original{KeyID: v.keys.Active(), Sealed: sealed}
	}
	return hidden, nil
}

// event puts marks into an event, and returns the texts that they stand for and whether it had to.
func (s *secrecy) event(e *event.Event) (found []string, hidden bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data := dataOf(*e)
	s.unsaved = append(s.unsaved, s.taint.Add(e.Sensitive...)...)
	for _, value := range []json.RawMessage{e.Extensions, data.value} {
		shown, found := s.policy.Value(emitted, value, nil)
		hidden = hidden || changed(shown, value)
		s.unsaved = append(s.unsaved, s.taint.Add(found...)...)
	}
	if !hidden && !s.taint.Any() {
		return nil, false
	}
	quoted, _ := json.Marshal(e.Subject) //nolint:errchkjson // a string always encodes
	found = s.taint.In(quoted, e.Extensions, data.value)
	var subject, extensions, payload bool
	e.Subject, subject = s.taint.Text(e.Subject)
	e.Extensions, extensions = s.value(emitted, e.Extensions)
	if data.value, payload = s.value(emitted, data.value); payload {
		e.Data = data.encode()
	}
	return found, subject || extensions || payload
}

// payload is the data of an event as JSON in which something can be found: where it is bytes, the JSON that they are, or a string of them.
type payload struct {
	value       json.RawMessage
	bytes, text bool
}

func dataOf(e event.Event) payload {
	var inBase64 string
	if !e.DataBase64 || json.Unmarshal(e.Data, &inBase64) != nil {
		return payload{value: e.Data}
	}
	raw, err := base64.StdEncoding.DecodeString(inBase64)
	if err != nil {
		return payload{value: e.Data}
	}
	if json.Valid(raw) {
		return payload{value: raw, bytes: true}
	}
	quoted, _ := json.Marshal(string(raw)) //nolint:errchkjson // a string always encodes
	return payload{value: quoted, bytes: true, text: true}
}

// encode returns it in the form in which the event had it.
func (p payload) encode() json.RawMessage {
	if !p.bytes {
		return p.value
	}
	raw := []byte(p.value)
	if p.text {
		var text string
		_ = json.Unmarshal(p.value, &text) // marks were put into a string
		raw = []byte(text)
	}
	quoted, _ := json.Marshal(raw) //nolint:errchkjson // bytes always encode, as base64
	return quoted
}

// openEvents gives events back as they were published, in place. Those that do not open stay as they are.
func (v *Vault) openEvents(list []event.Event) {
	for i := range list {
		e := &list[i]
		if e.Original == nil {
			continue
		}
		var original sealedEvent
		plain, err := v.keys.Open(e.Original.Sealed, aboutEvent(e.Project, *e)...)
		if err != nil || json.Unmarshal(plain, &original) != nil {
			continue
		}
		e.Subject, e.Extensions, e.Data, e.Original, e.Opened = original.Subject, original.Extensions, original.Data, nil, true
		e.Sensitive = original.Sensitive
	}
}

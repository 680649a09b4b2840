package sealed

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

// Events is a store of events that writes nothing sensitive. Matching and delivery read the published originals from
// it. An event with an original that does not open keeps its marks and its [event.Event.Original], so that a lost key
// does not block the other events.
type Events struct {
	EventStore

	sealer  *Sealer
	earlier event.Earlier

	mu sync.Mutex
	// batches hold the last batch that was read for matching, by project.
	batches map[string]*matched
}

var _ event.Store = (*Events)(nil)

// Events returns a store that writes to the given one with marks and sealed originals. earlier is how its listeners
// look through the events before them.
func (sl *Sealer) Events(below EventStore, earlier event.Earlier) *Events {
	return &Events{EventStore: below, sealer: sl, earlier: earlier, batches: map[string]*matched{}}
}

// Publish implements [event.Store].
func (s *Events) Publish(ctx context.Context, project string, list []event.Event) ([]event.Accepted, bool, error) {
	hidden, err := s.sealer.hideEvents(ctx, project, list)
	if err != nil {
		return nil, false, err
	}
	accepted, wake, err := s.EventStore.Publish(ctx, project, allMarked(hidden))
	if err == nil {
		s.compareDuplicates(ctx, project, list, hidden, accepted)
	}
	return accepted, wake, err
}

// compareDuplicates sets which duplicates differ from the events that were accepted before. Values behind marks are
// compared only for the publisher of the earlier event: others could find out a hidden value by guessing it.
//
// An error is logged only: the events are committed.
func (s *Events) compareDuplicates(ctx context.Context, project string, given, hidden []event.Event,
	accepted []event.Accepted) {
	var positions []int64
	for _, a := range accepted {
		if a.Duplicate {
			positions = append(positions, a.Position)
		}
	}
	if len(positions) == 0 {
		return
	}
	earlier, err := s.EventsAt(ctx, project, positions)
	if err != nil {
		logger.FromContext(ctx).WarnContext(ctx,
			"Duplicate events could not be compared with the events that were accepted before",
			"project", project, "events", len(positions), "error", err)
		return
	}
	for i := range accepted {
		a := &accepted[i]
		at, found := slices.BinarySearchFunc(earlier, a.Position, func(e event.Event, position int64) int {
			return cmp.Compare(e.Position, position)
		})
		if !a.Duplicate || !found {
			continue
		}
		before := earlier[at]
		a.Different = !event.SameContent(before, hidden[i])
		if before.Original != nil && before.Actor == given[i].Actor {
			opened := []event.Event{before}
			s.sealer.openEvents(opened)
			a.Different = opened[0].Opened && !event.SameContent(opened[0], given[i])
		}
	}
}

// RecordOwner implements [event.Store].
func (s *Events) RecordOwner(ctx context.Context, c dispatchtype.OwnerChange, announcement event.Event,
	e audit.Entry) error {
	hidden, err := s.sealer.hideEvents(ctx, c.Name.Project, []event.Event{announcement})
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
		s.sealer.openEvents(d.Events)
	}
	return due, err
}

// RecordOutcomes implements [event.Store]. The reason of a failed delivery may quote its events and its run.
func (s *Events) RecordOutcomes(ctx context.Context, project string, owner inbox.Owner,
	outcomes []inbox.DeliveryOutcome) error {
	var ids []string
	for _, one := range outcomes {
		if one.Outcome.Reason != "" {
			ids = append(ids, one.ID)
		}
	}
	texts := map[string]func(string) string{}
	if len(ids) > 0 && s.sealer.keys.Seals() {
		deliveries, err := s.FindDeliveries(ctx, project, ids)
		if err != nil {
			return err
		}
		if texts, err = s.sealer.deliveryTexts(ctx, deliveries); err != nil {
			return err
		}
	}
	hidden := slices.Clone(outcomes)
	for i := range hidden {
		if text := texts[hidden[i].ID]; text != nil {
			hidden[i].Outcome.Reason = text(hidden[i].Outcome.Reason)
		}
	}
	return s.EventStore.RecordOutcomes(ctx, project, owner, allMarked(hidden))
}

// deliveryTexts returns functions that replace secrets in texts about deliveries, by delivery ID. An event that does
// not open was not delivered, so that no text quotes it.
func (sl *Sealer) deliveryTexts(ctx context.Context,
	deliveries []event.Delivery) (map[string]func(string) string, error) {
	var runs []string
	for _, d := range deliveries {
		runs = append(runs, d.RunID)
		sl.openEvents(d.Events)
	}
	known, err := sl.rereadAll(ctx, runs)
	if err != nil {
		return nil, err
	}
	texts := make(map[string]func(string) string, len(deliveries))
	for _, d := range deliveries {
		var secrets redact.SecretSet
		for _, e := range d.Events {
			secrets.Add(e.Sensitive...)
		}
		texts[d.ID] = func(text string) string {
			shown, _ := secrets.Text(text)
			return known[d.RunID].redact(shown)
		}
	}
	return texts, nil
}

// sealedEvent is the content of an [event.Original]. Extensions and data are byte slices, because nested JSON would not
// keep their exact bytes. Sensitive are the texts that the marks replace, which receivers of the event must hide.
type sealedEvent struct {
	Subject    string `json:"subject,omitempty"`
	Extensions []byte `json:"extensions,omitempty"`
	Data       []byte `json:"data,omitempty"`

	Sensitive []string `json:"sensitive,omitempty"`
}

// aboutEvent returns what an original is authenticated with. The event has no position yet when it is sealed.
func aboutEvent(project string, e event.Event) []string {
	return []string{"event", project, e.Source, e.ID}
}

// emitted is the location of the events that a run emits: what is sensitive in the run's own input and output is
// sensitive in them.
func emitted() redact.Location { return redact.Location{Pointer: "event"} }

// hideEvents returns copies of events without sensitive values. It does not change the events, which the caller may
// publish again.
func (sl *Sealer) hideEvents(ctx context.Context, project string, list []event.Event) ([]event.Event, error) {
	if !sl.keys.Seals() {
		return list, nil
	}
	var ids []string
	for _, e := range list {
		if e.RunID != "" {
			ids = append(ids, e.RunID)
		}
	}
	known, err := sl.runSecretsOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	hidden := slices.Clone(list)
	for i, given := range list {
		s := known[given.RunID]
		if s == nil {
			s = &runSecrets{policy: &redact.Policy{}}
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
		sealed, err := sl.keys.Seal(plain, aboutEvent(project, hidden[i])...)
		if err != nil {
			return nil, fmt.Errorf("sealing event %q: %w", hidden[i].ID, err)
		}
		hidden[i].Original = &event.Original{KeyID: sl.keys.Active(), Sealed: sealed}
	}
	return hidden, nil
}

// event replaces secrets in an event. It returns the texts that were replaced, and reports whether there were any.
func (s *runSecrets) event(e *event.Event) (found []string, hidden bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data := dataOf(*e)
	s.unsaved = append(s.unsaved, s.secrets.Add(e.Sensitive...)...)
	for _, value := range []json.RawMessage{e.Extensions, data.value} {
		shown, found := s.policy.Value(emitted(), value, nil)
		hidden = hidden || changed(shown, value)
		s.unsaved = append(s.unsaved, s.secrets.Add(found...)...)
	}
	if !hidden && !s.secrets.Any() {
		return nil, false
	}
	quoted, _ := json.Marshal(e.Subject) //nolint:errchkjson // a string always encodes
	found = s.secrets.In(quoted, e.Extensions, data.value)
	var subject, extensions, payload bool
	e.Subject, subject = s.secrets.Text(e.Subject)
	e.Extensions, extensions = s.value(emitted(), e.Extensions)
	if data.value, payload = s.value(emitted(), data.value); payload {
		e.Data = data.encode()
	}
	return found, subject || extensions || payload
}

// payload is the data of an event as JSON that can be searched: of binary data, the JSON that it contains, or a string
// of its bytes.
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

// encode returns the payload in the form that the event had.
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

// openEvents restores events as they were published, in place. An event that does not open stays unchanged.
func (sl *Sealer) openEvents(list []event.Event) {
	for i := range list {
		e := &list[i]
		if e.Original == nil {
			continue
		}
		var original sealedEvent
		plain, err := sl.keys.Open(e.Original.Sealed, aboutEvent(e.Project, *e)...)
		if err != nil || json.Unmarshal(plain, &original) != nil {
			continue
		}
		e.Subject, e.Extensions, e.Data, e.Original, e.Opened = original.Subject, original.Extensions, original.Data, nil,
			true
		e.Sensitive = original.Sensitive
	}
}

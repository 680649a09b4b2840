package sealed

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

// sealedKey is the prefix of the stored key of a partial, which contains values of correlation keys.
const sealedKey = "\u27e6sealed\u27e7"

// matched is the data of the batch that was read for matching which is required to write its routings. The owner of a
// dispatcher reads and writes one batch after another; a routing of an older batch fails with [event.ErrRouted].
type matched struct {
	// keys are the stored keys of partials, by workflow and opened key.
	keys map[[2]string]string
	// secrets are those of the events, which reasons may quote.
	secrets redact.SecretSet
}

// Unrouted implements [event.Rows].
func (s *Events) Unrouted(ctx context.Context, project string, limit int) (event.Batch, error) {
	b, err := s.EventStore.Unrouted(ctx, project, limit)
	if err != nil {
		return b, err
	}
	s.sealer.openEvents(b.Events)
	for i := range b.Listeners {
		s.sealer.openExpected(&b.Listeners[i])
	}
	m := &matched{keys: make(map[[2]string]string, len(b.Partials))}
	for i := range b.Partials {
		p := &b.Partials[i]
		stored := p.Key
		p.Key = s.sealer.openKey(project, *p)
		m.keys[[2]string{p.Workflow, p.Key}] = stored
	}
	for _, e := range b.Events {
		m.secrets.Add(e.Sensitive...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches[project] = m
	return b, nil
}

// CommitRouting implements [event.Store]. The keys of partials are sealed. The sealed key of a partial stays the same
// until it is removed.
func (s *Events) CommitRouting(ctx context.Context, project string, owner inbox.Owner, routings []event.Routing) error {
	hidden := make([]Sealed[event.Routing], len(routings))
	s.mu.Lock()
	m := s.batches[project]
	s.mu.Unlock()
	if m == nil {
		m = &matched{}
	}
	fresh := map[[2]string]string{}
	for i, r := range routings {
		if s.sealer.keys.Seals() {
			r.Reason, _ = m.secrets.Text(r.Reason)
			r.Deliveries = slices.Clone(r.Deliveries)
			for n := range r.Deliveries {
				r.Deliveries[n].Reason, _ = m.secrets.Text(r.Deliveries[n].Reason)
			}
			var err error
			if r.Partials, err = s.sealer.sealKeys(project, r.Partials, m.keys, fresh); err != nil {
				return err
			}
		}
		hidden[i] = marked(r)
	}
	return s.EventStore.CommitRouting(ctx, project, owner, hidden)
}

// aboutKey returns what the key of a partial is authenticated with.
func aboutKey(project, workflow string) []string { return []string{"partial", project, workflow} }

// sealKeys returns partials with their stored keys. It adds new sealed keys to fresh, so that each key is sealed once.
func (sl *Sealer) sealKeys(project string, list []event.Partial,
	stored, fresh map[[2]string]string) ([]event.Partial, error) {
	hidden := make([]event.Partial, len(list))
	for i, p := range list {
		id := [2]string{p.Workflow, p.Key}
		hidden[i] = p
		if key, there := stored[id]; there {
			hidden[i].Key = key
			continue
		}
		if _, there := fresh[id]; !there {
			sealed, err := sl.keys.Seal([]byte(p.Key), aboutKey(project, p.Workflow)...)
			if err != nil {
				return nil, fmt.Errorf("sealing a set of events for workflow %q: %w", p.Workflow, err)
			}
			fresh[id] = sealedKey + base64.StdEncoding.EncodeToString(sealed)
		}
		hidden[i].Key = fresh[id]
	}
	return hidden, nil
}

// KeyOfSet returns the ID of the key that sealed the stored key of a partial, and false for one that is not sealed.
func KeyOfSet(stored string) (id string, isSealed bool) {
	raw, isSealed := sealedSet(stored)
	if !isSealed {
		return "", false
	}
	id, err := keyring.KeyOf(raw)
	return id, err == nil
}

// sealedSet returns the sealed value of the stored key of a partial, and false for one that is not sealed.
func sealedSet(stored string) (raw []byte, isSealed bool) {
	text, isSealed := strings.CutPrefix(stored, sealedKey)
	if !isSealed {
		return nil, false
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	return raw, err == nil
}

// openKey returns the key of a partial. A key that does not open stays sealed: matching removes a set that it cannot
// read.
func (sl *Sealer) openKey(project string, p event.Partial) string {
	raw, isSealed := sealedSet(p.Key)
	if !isSealed {
		return p.Key
	}
	plain, err := sl.keys.Open(raw, aboutKey(project, p.Workflow)...)
	if err != nil {
		return p.Key
	}
	return string(plain)
}

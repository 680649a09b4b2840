package vault

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

// sealedKey begins the stored key of a partial, which holds values of correlation keys.
const sealedKey = "\u27e6sealed\u27e7"

// matched is what was read to be matched: what is needed to write what matching made of it. The owner of a dispatcher reads and writes
// one batch after another; a routing of a batch that another one has replaced is [event.ErrRouted].
type matched struct {
	// keys are those of partials as they are stored, by workflow and key.
	keys map[[2]string]string
	// taint is what is sensitive in the events, which reasons may quote.
	taint redact.Taint
}

// Unrouted implements [event.Rows].
func (s *Events) Unrouted(ctx context.Context, project string, limit int) (event.Batch, error) {
	b, err := s.EventStore.Unrouted(ctx, project, limit)
	if err != nil {
		return b, err
	}
	s.vault.openEvents(b.Events)
	for i := range b.Listeners {
		s.vault.openExpected(&b.Listeners[i])
	}
	m := &matched{keys: make(map[[2]string]string, len(b.Partials))}
	for i := range b.Partials {
		p := &b.Partials[i]
		stored := p.Key
		p.Key = s.vault.openKey(project, *p)
		m.keys[[2]string{p.Workflow, p.Key}] = stored
	}
	for _, e := range b.Events {
		m.taint.Add(e.Sensitive...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches[project] = m
	return b, nil
}

// CommitRouting implements [event.Store]. The keys of partials are sealed, and stay what they are until they are removed.
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
		if s.vault.keys.Seals() {
			r.Reason, _ = m.taint.Text(r.Reason)
			r.Deliveries = slices.Clone(r.Deliveries)
			for n := range r.Deliveries {
				r.Deliveries[n].Reason, _ = m.taint.Text(r.Deliveries[n].Reason)
			}
			var err error
			if r.Partials, err = s.vault.sealKeys(project, r.Partials, m.keys, fresh); err != nil {
				return err
			}
		}
		hidden[i] = marked(r)
	}
	return s.EventStore.CommitRouting(ctx, project, owner, hidden)
}

// aboutKey is what the key of a partial is authenticated with.
func aboutKey(project, workflow string) []string { return []string{"partial", project, workflow} }

// sealKeys returns partials with their stored keys. It adds those that it makes to fresh: one key is sealed once.
func (v *Vault) sealKeys(project string, list []event.Partial, stored, fresh map[[2]string]string) ([]event.Partial, error) {
	hidden := make([]event.Partial, len(list))
	for i, p := range list {
		id := [2]string{p.Workflow, p.Key}
		hidden[i] = p
		if key, there := stored[id]; there {
			hidden[i].Key = key
			continue
		}
		if _, there := fresh[id]; !there {
			sealed, err := v.keys.Seal([]byte(p.Key), aboutKey(project, p.Workflow)...)
			if err != nil {
				return nil, fmt.Errorf("sealing a set of events for workflow %q: %w", p.Workflow, err)
			}
			fresh[id] = sealedKey + base64.StdEncoding.EncodeToString(sealed)
		}
		hidden[i].Key = fresh[id]
	}
	return hidden, nil
}

// openKey returns the key of a partial. One that does not open stays as it is: matching removes a set that it cannot read.
func (v *Vault) openKey(project string, p event.Partial) string {
	text, sealed := strings.CutPrefix(p.Key, sealedKey)
	if !sealed {
		return p.Key
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return p.Key
	}
	plain, err := v.keys.Open(raw, aboutKey(project, p.Workflow)...)
	if err != nil {
		return p.Key
	}
	return string(plain)
}

package flow

import (
	"fmt"

	"github.com/jellydator/ttlcache/v3"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

// maxPolicies is the number of policies of documents that a worker caches.
const maxPolicies = 1000

// newTracker returns the tracker of a run.
func (w *Workflow) newTracker(in Input) *SensitiveTracker {
	p := w.policy(in, in.DocumentHash)
	if in.Sensitive.All {
		p = redact.Everything()
	}
	for _, hash := range in.Sensitive.Documents {
		p = p.With(w.policy(in, hash))
	}
	t := NewSensitiveTracker(p, in.Sensitive)
	t.Input(in.Input)
	return t
}

// policy returns the policy of a document. If the document is deleted, everything is sensitive. If it cannot be loaded
// now, the task returns to Temporal.
func (w *Workflow) policy(in Input, hash string) *redact.Policy {
	if cached := w.policies.Get(hash); cached != nil {
		return cached.Value()
	}
	doc, err := w.document(hash)
	if f, ok := apperror.From(err); ok && f.Class == apperror.NotFound {
		return redact.Everything()
	}
	if err != nil {
		panic(fmt.Sprintf("load document %q for run %q: %v", hash, in.RunID, err))
	}
	return w.policies.Set(hash, redact.For(doc), ttlcache.NoTTL).Value()
}

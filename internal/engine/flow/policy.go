package flow

import (
	"fmt"
	"sync"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

// maxPolicies is the number of policies that a worker caches. When it is reached, the cache is cleared.
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

// policies caches the policies of documents, by hash.
type policies struct {
	mu     sync.Mutex
	byHash map[string]*redact.Policy
}

// policy returns the policy of a document. If the document is deleted, everything is sensitive. If it cannot be loaded
// now, the task returns to Temporal.
func (w *Workflow) policy(in Input, hash string) *redact.Policy {
	w.policies.mu.Lock()
	p := w.policies.byHash[hash]
	w.policies.mu.Unlock()
	if p != nil {
		return p
	}
	doc, err := w.document(hash)
	if f, ok := apperror.From(err); ok && f.Class == apperror.NotFound {
		return redact.Everything()
	}
	if err != nil {
		panic(fmt.Sprintf("load document %q for run %q: %v", hash, in.RunID, err))
	}
	p = redact.For(doc)
	w.policies.mu.Lock()
	defer w.policies.mu.Unlock()
	if len(w.policies.byHash) >= maxPolicies {
		w.policies.byHash = map[string]*redact.Policy{}
	}
	w.policies.byHash[hash] = p
	return p
}

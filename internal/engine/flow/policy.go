package flow

import (
	"fmt"
	"sync"

	"github.com/signalbox-dev/signalbox/internal/engine/lookout"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

// maxPolicies is how many policies a worker keeps. Beyond it the memory starts afresh.
const maxPolicies = 1000

// lookout makes that of a run.
func (w *Workflow) lookout(in Input) *lookout.Lookout {
	p := w.policy(in, in.DocumentHash)
	if in.Sensitive.All {
		p = redact.Everything()
	}
	for _, hash := range in.Sensitive.Documents {
		p = p.With(w.policy(in, hash))
	}
	l := lookout.New(p, in.Sensitive)
	l.Input(in.Input)
	return l
}

// policies are those of documents, by hash.
type policies struct {
	mu    sync.Mutex
	known map[string]*redact.Policy
}

// policy is that of a document. Of one that is gone, everything is sensitive; one that cannot be loaded now gives the task back.
func (w *Workflow) policy(in Input, hash string) *redact.Policy {
	w.policies.mu.Lock()
	p := w.policies.known[hash]
	w.policies.mu.Unlock()
	if p != nil {
		return p
	}
	doc, err := w.document(hash)
	if f, ok := fault.From(err); ok && f.Class == fault.NotFound {
		return redact.Everything()
	}
	if err != nil {
		panic(fmt.Sprintf("load document %q for run %q: %v", hash, in.RunID, err))
	}
	p = redact.For(doc)
	w.policies.mu.Lock()
	defer w.policies.mu.Unlock()
	if len(w.policies.known) >= maxPolicies {
		w.policies.known = map[string]*redact.Policy{}
	}
	w.policies.known[hash] = p
	return p
}

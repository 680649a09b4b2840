package claimcheck

import (
	"sync"

	"go.temporal.io/sdk/converter"
)

const (
	// Threshold is the size in bytes from which a payload never stays in a history.
	Threshold = 16 << 10
	// smallest is the size below which a payload always stays: a reference to it would not be much smaller.
	smallest = 2 << 10
	// inline is how many bytes of payloads between the two stay in the history of one execution: more would make a history of megabytes
	// out of many answers of a few kilobytes.
	inline = 128 << 10
	// maxInline is the size from which also a payload goes that is to stay: Temporal would not take it.
	maxInline = 1 << 20
	// maxExecutions is how many executions are counted. Beyond it counting starts afresh: some more bytes stay in histories.
	maxExecutions = 20_000
)

// budget counts the bytes that stayed in the histories of executions.
type budget struct {
	mu     sync.Mutex
	inline map[execution]int
}

// execution names an execution; the ID of a run alone names the one that is about to begin.
type execution struct{ workflow, run string }

func newBudget() *budget { return &budget{inline: map[execution]int{}} }

// exceeded counts a payload of an execution, and reports whether it is one too many for its history.
func (b *budget) exceeded(w converter.StorageDriverWorkflowInfo, size int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := execution{w.WorkflowID, w.RunID}
	if b.inline[x]+size > inline {
		return true
	}
	if _, known := b.inline[x]; !known && len(b.inline) >= maxExecutions {
		clear(b.inline)
	}
	b.inline[x] += size
	return false
}

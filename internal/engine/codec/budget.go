package codec

import (
	"sync"

	"github.com/jellydator/ttlcache/v3"
	"go.temporal.io/sdk/converter"
)

const (
	// Threshold is the size in bytes from which a payload never stays in a history.
	Threshold = 16 << 10
	// smallest is the size below which a payload always stays in the history: a reference to it would not be much
	// smaller.
	smallest = 2 << 10
	// inline is the number of bytes of payloads between the two sizes that stay in the history of one execution.
	// Without it, many results of a few kilobytes would make a history of megabytes.
	inline = 128 << 10
	// maxInline is the size from which even a payload that is marked to stay is stored outside: Temporal would reject
	// it.
	maxInline = 1 << 20
	// maxExecutions bounds the number of executions that are counted. Counting restarts for those beyond it, and some
	// more of their bytes stay in histories.
	maxExecutions = 20_000
)

// budget counts the bytes that stayed in the histories of executions.
type budget struct {
	mu     sync.Mutex
	inline *ttlcache.Cache[execution, int]
}

// execution identifies an execution. Without a Temporal run ID it is the execution that is about to start.
type execution struct{ workflow, run string }

func newBudget() *budget {
	return &budget{inline: ttlcache.New(ttlcache.WithCapacity[execution, int](maxExecutions))}
}

// exceeded counts a payload of an execution, and reports whether it exceeds the budget of the history.
func (b *budget) exceeded(w converter.StorageDriverWorkflowInfo, size int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := execution{w.WorkflowID, w.RunID}
	if counted := b.inline.Get(x); counted != nil {
		size += counted.Value()
	}
	if size > inline {
		return true
	}
	b.inline.Set(x, size, ttlcache.NoTTL)
	return false
}

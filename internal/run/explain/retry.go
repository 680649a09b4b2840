package explain

import (
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Retry describes a try task that failed and is attempted again.
type Retry struct {
	// Step is the number of its step.
	Step int64
	Task string
	// Failed is the number of failed attempts. Limit is the most attempts that its policy allows; 0 without a limit, or
	// where the document does not exist any more.
	Failed, Limit int
	// Since is when the first attempt began.
	Since time.Time
	// LastError is that of the last attempt that failed.
	LastError *run.Error
}

// retry describes the innermost try that is attempted again and that has the given step, or is it; nil where there is
// none.
func (w *waiting) retry(path string) *Retry {
	for ; path != ""; path = path[:strings.LastIndexByte(path, '/')] {
		t := w.steps[path]
		if t == nil || t.Retries() == 0 {
			continue
		}
		r := &Retry{Step: t.Number, Task: t.Task, Failed: t.Retries(), Since: t.StartedAt, LastError: t.LastError()}
		if b, ok := bodyOf[*dsl.Try](w.tasks[t.Pointer]); ok && b.Catch.Retry != nil && b.Catch.Retry.Limit.Attempt.Count > 0 {
			r.Limit = b.Catch.Retry.Limit.Attempt.Count + 1 // the policy counts retries
		}
		return r
	}
	return nil
}

package problem

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/run"
)

// Retries is when a task that fails and is attempted again becomes a problem: as soon as one of its runs has so many
// failed attempts, or began the task so long ago.
type Retries struct {
	Attempts int
	After    time.Duration
}

// RetryingGroup are the runs of a workflow that attempt the same task again after a failure.
type RetryingGroup struct {
	Project, Workflow, Task, Pointer string
	// Count is the number of runs, Attempts the most failed attempts of one of them.
	Count    int64
	Attempts int
	// Since is when the first of them began the task.
	Since time.Time
	// Last is when the last attempt of the newest run ended; zero where it is not known.
	Last time.Time
	// Error is that of the last attempt of the newest run; nil where it is not known.
	Error *run.Error
}

// retryingKeyBytes is how much of a hash distinguishes the tasks of a project.
const retryingKeyBytes = 8

func retryingFinding(g RetryingGroup) Finding {
	p := cmp.Or(g.Error, &run.Error{})
	sum := sha256.Sum256([]byte(g.Workflow + "\n" + g.Pointer))
	f := Finding{
		ID:   idOf(Retrying, g.Project, hex.EncodeToString(sum[:retryingKeyBytes])),
		Kind: Retrying, Code: RunRetrying, Project: g.Project, Workflow: g.Workflow, Task: g.Task, Pointer: g.Pointer,
		Title: cmp.Or(p.Title, p.Type, "The task fails"), Cause: p.Type,
		Detail: fmt.Sprintf("%d attempts of task %s failed, and it is attempted again", g.Attempts, g.Task),
		Advice: fmt.Sprintf("correct the cause, and the next attempt succeeds; `signalbox run show ID` shows when it is; to "+
			"give up: `signalbox batch start --action cancel --project %s --workflow %s --retrying %s --reason TEXT`",
			g.Project, g.Workflow, g.Task),
		Runbook: runbook("RunsRetrying"), Count: g.Count, First: g.Since, Last: g.Last,
	}
	if p.Detail != "" {
		f.Detail += ": " + p.Detail
	}
	return f
}

package problem

import (
	"fmt"
	"time"
)

// RunawayWindow is the time in which the runs of a workflow that starts itself are counted.
const RunawayWindow = time.Minute

// Runaway is a workflow whose own runs start more of its runs, directly or through other workflows.
type Runaway struct {
	Project, Workflow string
	// Count is the number of such runs since the time that was asked for, which were created between First and Last.
	Count       int64
	First, Last time.Time
}

func runawayFinding(r Runaway) Finding {
	return Finding{
		ID: idOf(Platform, r.Project, string(WorkflowRunaway), r.Workflow), Kind: Platform, Code: WorkflowRunaway,
		Project: r.Project, Workflow: r.Workflow, Title: "Workflow " + r.Workflow + " starts itself without end",
		Detail: fmt.Sprintf("in the last minute, %d of its runs were started by its own runs: by a task, by an event that "+
			"they emit, or after their end", r.Count),
		Advice: fmt.Sprintf("`signalbox workflow stop %s --project %s --reason TEXT` pauses it and cancels its open runs; "+
			"where this is intended, raise runs.runaway_per_minute", r.Workflow, r.Project),
		Runbook: "docs/what-is-wrong.md#workflows-that-start-themselves", Count: r.Count, First: r.First, Last: r.Last,
	}
}

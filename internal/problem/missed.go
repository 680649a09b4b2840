package problem

import (
	"fmt"
	"time"
)

// MissedSchedule is a workflow whose schedule did not fire at its newest due time.
type MissedSchedule struct {
	Project, Workflow string
	At                time.Time
}

func missedFinding(m MissedSchedule) Finding {
	at := m.At.UTC().Format(time.RFC3339)
	return Finding{
		ID: idOf(Platform, m.Project, string(ScheduleMissed), m.Workflow), Kind: Platform, Code: ScheduleMissed,
		Project: m.Project, Workflow: m.Workflow, Title: "The schedule of workflow " + m.Workflow + " did not fire",
		Detail: "it was due at " + at + ", the newest time at which it had to fire",
		Advice: fmt.Sprintf("`signalbox workflow times %[1]s --project %[2]s` shows the outcomes of its due times; `signalbox "+
			"workflow backfill %[1]s --project %[2]s --since %[3]s` fires it at those that it missed", m.Workflow, m.Project, at),
		Runbook: "docs/what-is-wrong.md#schedules-that-did-not-fire", First: m.At, Last: m.At,
	}
}

// Package problem lists what an operator has to act on, grouped, and records what operators did about it.
//
//	s := problem.NewService(problem.Options{…})
//	list, err := s.List(ctx, problem.Query{Kinds: []problem.Kind{problem.Stuck}})
//	p, err := s.Acknowledge(ctx, problem.Change{ID: list.Problems[0].ID, Revision: list.Problems[0].Revision}, "the supplier is informed")
//	r := problem.NewRecorder(s, store, time.Now)
//	err = r.Start(ctx)
//
// Problems are found when they are read: runs that are stuck, by code and project; runs of the last seven days that
// failed, by failure group; runs that attempt a failing task again and again, by task; and what the status of the platform, the dispatchers and the deliveries of events show. The
// [Recorder] stores what was found, in one elected process, so that a problem that no longer exists stays listed for a
// day. No read depends on the recorder: without it, counts and states are still current.
//
// A source that cannot be read hides no problem: those that were recorded stay in the list, and the result names the
// source.
package problem

import (
	"strings"
	"time"
)

// Kind is where a problem is.
type Kind string

// The kinds.
const (
	// Stuck: runs that make no progress although they should.
	Stuck Kind = "stuck"
	// Retrying: runs that attempt the same task again and again, because it fails.
	Retrying Kind = "retrying"
	// Failure: runs that failed at the same task with the same cause, and have no replay.
	Failure Kind = "failure"
	// Platform: a part of the platform does not work.
	Platform Kind = "platform"
)

// Kinds returns all kinds, in the order of lists.
func Kinds() []Kind { return []Kind{Platform, Stuck, Retrying, Failure} }

// Code is what a problem is. The code of stuck runs is that of their verdicts, see [run.Codes].
type Code string

// The codes of problems that are not codes of stuck runs.
const (
	// RunFailed is the code of all failure groups.
	RunFailed Code = "RUN_FAILED"
	// RunRetrying is the code of all problems of runs that retry.
	RunRetrying Code = "RUN_RETRYING"
	// TemporalNotConnected: the connection of this server to Temporal is down or degraded.
	TemporalNotConnected Code = "TEMPORAL_NOT_CONNECTED"
	// DependencyNotUp: a dependency of this server is down or impaired.
	DependencyNotUp Code = "DEPENDENCY_NOT_UP"
	// ServerLost: a server writes no heartbeats any more and was not stopped.
	ServerLost Code = "SERVER_LOST"
	// DispatcherStale and the following are statuses of a project's dispatcher.
	DispatcherStale     Code = "DISPATCHER_STALE"
	DispatcherMissing   Code = "DISPATCHER_MISSING"
	DispatcherForeign   Code = "DISPATCHER_FOREIGN"
	DispatcherNoWorkers Code = "DISPATCHER_NO_WORKERS"
	DispatcherUnknown   Code = "DISPATCHER_UNKNOWN"
	// RunsForeign: open runs in Temporal that have no row, because their project or their version of a workflow is
	// missing.
	RunsForeign Code = "RUNS_FOREIGN"
	// DeliveriesDead: deliveries of events that are not attempted any more.
	DeliveriesDead Code = "DELIVERIES_DEAD"
	// WorkflowRunaway: the runs of a workflow start more of its runs, faster than a configured rate.
	WorkflowRunaway Code = "RUNAWAY"
	// ScheduleMissed: the schedule of a workflow did not fire at its newest due time.
	ScheduleMissed Code = "SCHEDULE_MISSED"
	// WebhookFailing: the attempts of a webhook have failed for a while. WebhookPaused: it was paused after failures.
	// WebhookDeliveriesDead: deliveries of a webhook were given up.
	WebhookFailing        Code = "WEBHOOK_FAILING"
	WebhookPaused         Code = "WEBHOOK_PAUSED"
	WebhookDeliveriesDead Code = "WEBHOOK_DELIVERIES_DEAD"
)

// State is what is done about a problem.
type State string

// The states.
const (
	Open         State = "open"
	Acknowledged State = "acknowledged"
	Snoozed      State = "snoozed"
	// Resolved: the problem no longer exists.
	Resolved State = "resolved"
)

// States returns all states.
func States() []State { return []State{Open, Acknowledged, Snoozed, Resolved} }

const (
	// Window is how long failed runs are a problem.
	Window = 7 * 24 * time.Hour
	// kept is how long a resolved problem is listed.
	kept = 24 * time.Hour
	// sameOccurrence is how long a problem may be away to be the same occurrence when it returns.
	sameOccurrence = time.Minute
	// Samples is how many runs of a problem are shown.
	Samples = 5
)

// Finding is a problem as it was found.
type Finding struct {
	// ID is the same whenever the problem is found: kind, project, code and what distinguishes it from others with these.
	ID      string `json:"id"`
	Kind    Kind   `json:"kind"`
	Code    Code   `json:"code"`
	Project string `json:"project,omitempty"`
	// TaskQueue is set for stuck runs and dispatchers; the following are set for failures, all but the last for retries.
	TaskQueue    string `json:"taskQueue,omitempty"`
	Workflow     string `json:"workflow,omitempty"`
	Task         string `json:"task,omitempty"`
	Pointer      string `json:"pointer,omitempty"`
	FailureGroup string `json:"failureGroup,omitempty"`
	// Versions are the versions of the workflow whose runs failed, those with the most runs first.
	Versions []VersionCount `json:"versions,omitempty"`
	Title    string         `json:"title"`
	Detail   string         `json:"detail,omitempty"`
	Cause    string         `json:"cause,omitempty"`
	Advice   string         `json:"advice,omitempty"`
	// Runbook is the path of a page of the documentation.
	Runbook string `json:"runbook,omitempty"`
	// Count is the number of runs, or of deliveries; 0 where nothing is counted. More reports that there are more than
	// Count.
	Count int64 `json:"count,omitempty"`
	More  bool  `json:"more,omitempty"`
	// NotReplayed counts the failed runs without a replay: none of a problem that is resolved.
	NotReplayed int64 `json:"notReplayed,omitempty"`
	// First and Last are the times of the first and the last sign of the problem; zero where they are not known.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Series is nil where there is none.
	Series *Series `json:"series,omitempty"`
}

// VersionCount is the number of failed runs of a version.
type VersionCount struct {
	Version string `json:"version"`
	Count   int64  `json:"count"`
}

// Series counts failures over time.
type Series struct {
	Start time.Time `json:"start"`
	// Interval is the time that each of the counts is about.
	Interval time.Duration `json:"interval"`
	Counts   []int64       `json:"counts"`
}

// Handling is what operators did about a problem.
type Handling struct {
	AcknowledgedAt time.Time
	Acknowledger   string
	// SnoozeUntil and SnoozeCount end a snooze: at this time, or when the problem has this count.
	SnoozeUntil time.Time
	SnoozeCount int64
	Owner, Note string
}

// Problem is a finding and what was done about it.
type Problem struct {
	Finding
	Handling

	State State
	// Revision grows with each change by an operator, and when the problem occurs again.
	Revision int64
	// SeenAt is when the problem was recorded; zero where it was not yet.
	SeenAt time.Time
	// ResolvedAt is zero while the problem exists, and until the end was recorded.
	ResolvedAt time.Time
	// Samples are the newest runs; only of the problems of a page.
	Samples []string

	// recorded reports that there is a record, and storedRevision is its revision.
	recorded       bool
	storedRevision int64
}

// Record is the row of a problem.
type Record struct {
	Finding
	Handling

	FirstSeen, LastSeen time.Time
	// ResolvedAt is zero while the problem exists.
	ResolvedAt time.Time
	Revision   int64
}

// idOf returns the ID of a problem. Names of projects contain no points.
func idOf(kind Kind, project string, rest ...string) string {
	return strings.Join(append([]string{string(kind), project}, rest...), ".")
}

// FailureID returns the ID of the problem of a failure group.
func FailureID(project, key string) string { return idOf(Failure, project, key) }

// projectOf returns the project in an ID, and false for a text that is no ID.
func projectOf(id string) (string, bool) {
	parts := strings.SplitN(id, ".", 3)
	if len(parts) < 3 || parts[2] == "" {
		return "", false
	}
	return parts[1], true
}

// merge returns the problem of a finding, a record, or both. unknown reports that the source of a problem without a
// finding could not be read. It returns false for a record that is not to be listed any more.
func merge(f *Finding, r *Record, unknown bool, now time.Time) (p Problem, listed bool) {
	if r != nil {
		p = Problem{Finding: r.Finding, Handling: r.Handling, Revision: r.Revision, SeenAt: r.FirstSeen,
			ResolvedAt: r.ResolvedAt, recorded: true, storedRevision: r.Revision}
	}
	if f == nil {
		if unknown && r.ResolvedAt.IsZero() {
			p.State = p.stateAt(now)
		} else {
			p.State = Resolved
		}
		return p, r.ResolvedAt.IsZero() || now.Sub(r.ResolvedAt) < kept
	}
	if r != nil && occursAgain(*r, now) {
		p.Handling, p.Revision, p.SeenAt = Handling{}, r.Revision+1, time.Time{}
	}
	p.Finding, p.ResolvedAt = *f, time.Time{}
	p.State = p.stateAt(now)
	return p, true
}

// occursAgain reports whether a problem that is found is a new occurrence of one that was resolved.
func occursAgain(r Record, now time.Time) bool {
	return !r.ResolvedAt.IsZero() && now.Sub(r.ResolvedAt) >= sameOccurrence
}

// stateAt returns the state of a problem that exists.
func (p Problem) stateAt(now time.Time) State { return p.stateWith(p.Count, now) }

// StateAt returns the state of a problem that exists, as it was recorded.
func (r Record) StateAt(now time.Time) State { return r.stateWith(r.Count, now) }

// stateWith returns the state of a problem that exists and has this count.
func (h Handling) stateWith(count int64, now time.Time) State {
	switch {
	case !h.AcknowledgedAt.IsZero():
		return Acknowledged
	case now.Before(h.SnoozeUntil), h.SnoozeCount > 0 && count < h.SnoozeCount:
		return Snoozed
	}
	return Open
}

// Counted reports whether the problem has a count: of runs, or of deliveries.
func (f Finding) Counted() bool {
	return f.Kind != Platform || f.Code == DeliveriesDead || strings.HasPrefix(string(f.Code), webhookCodes)
}

// webhookCodes is the beginning of the codes of webhooks.
const webhookCodes = "WEBHOOK_"

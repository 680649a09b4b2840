package message

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/control"
)

// RunOptions are the data in messages of runs that rows do not contain.
type RunOptions struct {
	// TemporalNamespace is the namespace of the runs.
	TemporalNamespace string
	// TemporalUI is the base address of Temporal's UI; empty if runs are not linked to it.
	TemporalUI string
	// TaskQueue returns the name of a project's task queue.
	TaskQueue func(project string) string
	// ControlRoles are the roles that controls require.
	ControlRoles map[control.Control]auth.Role
}

// Runs makes the messages of runs.
type Runs struct{ opts RunOptions }

// NewRuns returns the maker of messages.
func NewRuns(opts RunOptions) Runs { return Runs{opts} }

// Run returns the message of a run for the actor of ctx.
func (m Runs) Run(ctx context.Context, r run.Run) *signalboxv1.Run {
	return &signalboxv1.Run{
		Id: r.ID, Project: r.Project, Workflow: r.Workflow, Version: r.Version,
		Status: string(r.Status), QueuedReason: r.QueuedReason, WaitingKind: r.WaitingKind, StatusTime: Timestamp(r.StatusAt),
		CancelRequested: r.CancelRequested, CancelReason: r.CancelReason, TerminateReason: control.TerminateReason(r),
		Controls: controls(r), ControlStates: m.controlStates(ctx, r), FailedStep: failedStep(r.FailedStep),
		RequestId: r.RequestID, Trigger: r.Trigger, Actor: r.Actor,
		CreateTime: Timestamp(r.CreatedAt), StartTime: Timestamp(r.StartedAt), EndTime: Timestamp(r.EndedAt),
		StepsTotal: r.StepsTotal, StepsDone: r.StepsDone,
		Input: JSON(r.Input), Output: JSON(r.Output), Error: Error(r.Error),
		Sequence: r.Sequence, DocumentHash: r.DocumentHash,
		QueuePosition: queuePosition(r.QueuePosition), QueueExpireTime: Timestamp(r.ExpiresAt),
		ReplayOf: r.ReplayOf, Replays: r.Replays, ParentRunId: r.Parent.RunID, ParentPath: r.Parent.Path,
		Depth:      int32(r.Parent.Depth),       //nolint:gosec // bounded by runs.max_depth
		Generation: int32(r.Lineage.Generation), //nolint:gosec // bounded by runs.max_generation
		Redacted:   r.Redacted, Children: r.Children, Stuck: stuckMessage(r.Stuck), Behind: behindMessage(r.Behind),
		Warnings: warningMessages(r.Warnings), Quota: quotaUsage(r.Quota),
		Labels: r.Labels, LegacyEngine: r.LegacyEngine, Legacy: JSON(r.Legacy),
		Temporal: &signalboxv1.TemporalReference{
			Namespace: m.opts.TemporalNamespace, TaskQueue: m.opts.TaskQueue(r.Project), WorkflowId: r.ID, RunId: r.ExecutionID,
			Url: m.temporalURL(r),
		},
	}
}

// temporalURL returns the address of the run's execution in Temporal's UI; empty if there is none.
func (m Runs) temporalURL(r run.Run) string {
	if m.opts.TemporalUI == "" || r.ExecutionID == "" {
		return ""
	}
	return strings.TrimRight(m.opts.TemporalUI, "/") + "/namespaces/" + url.PathEscape(m.opts.TemporalNamespace) +
		"/workflows/" + url.PathEscape(r.ID) + "/" + url.PathEscape(r.ExecutionID)
}

// failedStep returns nil for a run that no step is known to have ended.
func failedStep(f *run.FailedStep) *signalboxv1.FailedStep {
	if f == nil {
		return nil
	}
	return &signalboxv1.FailedStep{
		Number: f.Number, Pointer: f.Pointer, Path: f.Path, Task: f.Task,
		Attempts: int32(f.Attempts)} //nolint:gosec // retries stay far below
}

func warningMessages(list []run.Warning) []*signalboxv1.RunWarning {
	messages := make([]*signalboxv1.RunWarning, len(list))
	for i, w := range list {
		messages[i] = &signalboxv1.RunWarning{Code: w.Code, Detail: w.Detail, Time: Timestamp(w.At)}
	}
	return messages
}

func behindMessage(b *run.Behind) *signalboxv1.RowsBehind {
	if b == nil {
		return nil
	}
	return &signalboxv1.RowsBehind{Since: Timestamp(b.Since), Reason: b.Reason, Failure: b.Failure}
}

func stuckMessage(s *run.Stuck) *signalboxv1.Stuck {
	if s == nil {
		return nil
	}
	return &signalboxv1.Stuck{
		Code: s.Code, Cause: s.Cause, Since: Timestamp(s.Since), Detail: s.Detail, Advice: s.Advice,
		CheckTime: Timestamp(s.CheckedAt),
	}
}

// quotaUsage returns nil for a run that does not wait for steps.
func quotaUsage(u *run.QuotaUsage) *signalboxv1.QuotaUsage {
	if u == nil {
		return nil
	}
	return &signalboxv1.QuotaUsage{Used: u.Used, Limit: u.Limit, ResetTime: Timestamp(u.ResetAt)}
}

// queuePosition returns nil for a run that is in no queue.
func queuePosition(position int64) *int64 {
	if position == 0 {
		return nil
	}
	return &position
}

// controlStates returns the effect of each control on the run if the actor of ctx uses it.
func (m Runs) controlStates(ctx context.Context, r run.Run) []*signalboxv1.ControlState {
	actor, _ := auth.ActorFrom(ctx)
	outcomes := control.Outcomes(r)
	states := make([]*signalboxv1.ControlState, len(outcomes))
	for i, o := range outcomes {
		state := &signalboxv1.ControlState{
			Control: string(o.Control), Effect: effectName(o.Effect), Reason: cmp.Or(o.Reason, o.May), Detail: o.Detail}
		if role := m.opts.ControlRoles[o.Control]; !actor.May(r.Project, role) {
			state.Effect, state.Reason = "forbidden", apperror.PermissionDenied
			state.Detail = fmt.Sprintf("Needs %s in %s", role, r.Project)
		}
		states[i] = state
	}
	return states
}

func effectName(e control.Effect) string {
	switch e {
	case control.Done:
		return "yes"
	case control.Nothing:
		return "no_effect"
	case control.Refused:
		return "refused"
	}
	return ""
}

// controls lists the controls that apply to the run.
func controls(r run.Run) []string {
	available := control.Available(r)
	names := make([]string, len(available))
	for i, c := range available {
		names[i] = string(c)
	}
	return names
}

// Error returns nil for nil.
func Error(p *run.Error) *signalboxv1.RunError {
	if p == nil {
		return nil
	}
	return &signalboxv1.RunError{
		Type: p.Type, Status: int32(p.Status), Title: p.Title, Detail: p.Detail, //nolint:gosec // statuses are three digits
		Instance: p.Instance,
	}
}

// Counts returns the message of counts.
func Counts(counts run.Counts) *signalboxv1.CountRunsResponse {
	more := make([]string, len(counts.More))
	for i, status := range counts.More {
		more[i] = string(status)
	}
	m := &signalboxv1.CountRunsResponse{Statuses: counts.Statuses, Stuck: counts.Stuck, More: more}
	for _, b := range counts.Buckets {
		m.Buckets = append(m.Buckets, &signalboxv1.RunBucket{Start: Timestamp(b.Start), Statuses: b.Statuses})
	}
	return m
}

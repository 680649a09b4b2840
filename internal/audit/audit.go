// Package audit records all changes: the actor, the action, its subject, its time and its reason. Entries are written
// in the transaction of the change, and never updated afterwards.
package audit

import (
	"context"
	"encoding/json"
	"time"

	"github.com/signalbox-dev/signalbox/internal/auth"
)

// Actions, as noun.verb.
const (
	ProjectCreate     = "project.create"
	ProjectUpdate     = "project.update"
	WorkflowSaveDraft = "workflow.save_draft"
	WorkflowPublish   = "workflow.publish"
	WorkflowPause     = "workflow.pause"
	WorkflowUnpause   = "workflow.unpause"
	WorkflowDelete    = "workflow.delete"
	// WorkflowSetSchedule is a change of settings of a schedule, WorkflowBackfill a request to fire it at past times.
	WorkflowSetSchedule = "workflow.set_schedule"
	WorkflowBackfill    = "workflow.backfill"
	FunctionPublish     = "function.publish"
	FunctionDelete      = "function.delete"
	RunStart            = "run.start"
	RunStartRefused     = "run.start_refused"
	RunQueueExpired     = "run.queue_expired"
	RunCancel           = "run.cancel"
	// RunUnredact: an actor viewed the sensitive values of a run.
	RunUnredact = "run.view_unredacted"
	// PayloadsOpen: an actor decrypted payloads of a Temporal namespace; the subject is the namespace.
	PayloadsOpen   = "payloads.open"
	RunTerminate   = "run.terminate"
	RunPause       = "run.pause"
	RunUnpause     = "run.unpause"
	RunResumeQuota = "run.resume_quota"
	// RunReplay is the start of a run with the input of an earlier one; the subject is the new run.
	RunReplay = "run.replay"
	// SystemResetBreaker and SystemReconcile concern the platform as a whole; such entries have no project.
	SystemResetBreaker = "system.reset_breaker"
	SystemReconcile    = "system.reconcile"
	// SystemAdoptTemporal records another Temporal as the one that holds the runs; the subject is its address and
	// namespace.
	SystemAdoptTemporal = "system.adopt_temporal"
	// SystemMaintenanceOn and SystemMaintenanceOff switch the maintenance mode.
	SystemMaintenanceOn  = "system.maintenance_on"
	SystemMaintenanceOff = "system.maintenance_off"
	// RunHandOver and the following were done by the reconciler to a run that differed from Temporal.
	RunHandOver         = "run.hand_over"
	RunFinish           = "run.finish"
	RunExecutionMissing = "run.execution_missing"
	RunFollowReset      = "run.follow_reset"
	RunReopened         = "run.reopened_in_temporal"
	RunAdopt            = "run.adopt"
	RunImport           = "run.import"
	RunEngineGone       = "run.engine_gone"
	EventRedeliver      = "event.redeliver"
	BatchStart          = "batch.start"
	BatchPause          = "batch.pause"
	BatchUnpause        = "batch.unpause"
	BatchRetry          = "batch.retry"
	QuotaSet            = "quota.set"
	// ProblemAcknowledge and the following are what an operator did about a problem; the subject is its ID.
	ProblemAcknowledge = "problem.acknowledge"
	ProblemSnooze      = "problem.snooze"
	ProblemUpdate      = "problem.update"
	ProblemReopen      = "problem.reopen"
	// ViewSave and ViewDelete are changes of shared views. The subject is the ID of the view, the reason its name.
	ViewSave   = "view.save"
	ViewDelete = "view.delete"
	// WebhookCreate and the following are changes of webhooks. The subject is the name of the webhook, for
	// WebhookRedeliver the ID of the delivery. WebhookDisable is a pause by the platform, after failures.
	WebhookCreate       = "webhook.create"
	WebhookUpdate       = "webhook.update"
	WebhookPause        = "webhook.pause"
	WebhookDisable      = "webhook.disable"
	WebhookUnpause      = "webhook.unpause"
	WebhookRotateSecret = "webhook.rotate_secret" //nolint:gosec // the name of an action
	WebhookDelete       = "webhook.delete"
	WebhookTest         = "webhook.test"
	WebhookRedeliver    = "webhook.redeliver"
	// RetentionDelete sums up what one pass of retention deleted in a project.
	RetentionDelete = "retention.delete"
	// DispatcherHandOver and DispatcherReconcile were requested by an actor.
	DispatcherHandOver  = "dispatcher.hand_over"
	DispatcherReconcile = "dispatcher.reconcile"
	// DispatcherChangeOwner and the following were done by the workers themselves. The subject is the ID of the
	// dispatcher's workflow, for WorkerEvict the worker's server ID.
	DispatcherChangeOwner = "dispatcher.change_owner"
	DispatcherTerminate   = "dispatcher.terminate"
	WorkerEvict           = "worker.evict"
	TokenCreate           = "token.create"
	TokenRevoke           = "token.revoke"
	// SessionSignIn and the following are about sessions of browsers. The subject is the ID of the session.
	SessionSignIn  = "session.sign_in"
	SessionSignOut = "session.sign_out"
	SessionRevoke  = "session.revoke"
	// AccessDenied is a call that would have changed something and was refused because the actor lacks a role. Of many
	// consecutive ones, only some are written.
	AccessDenied = "access.denied"
)

// Entry records one change. The store assigns the ID, which increases.
type Entry struct {
	ID      int64
	Time    time.Time
	Actor   auth.Actor
	Action  string
	Project string
	// Subject is the run ID, workflow name or project name that was changed.
	Subject string
	Reason  string
	// Detail holds further facts as JSON; may be nil.
	Detail json.RawMessage
}

// Cursor is a position in a list, newest first.
type Cursor struct {
	ID int64 `json:"id"`
}

// Filter selects the entries to list. Zero fields match everything.
type Filter struct {
	Project string
	Action  string
	Subject string
	Actor   string
	Since   time.Time
	Until   time.Time
	// OldestFirst reverses the order, and the meaning of After with it.
	OldestFirst bool
	After       *Cursor
	Limit       int
}

// Store stores entries.
type Store interface {
	// ListAudit returns entries that match, newest first unless the filter says otherwise.
	ListAudit(ctx context.Context, f Filter) ([]Entry, error)
}

// NewEntry returns an entry for an action of the actor of ctx at the given time.
func NewEntry(ctx context.Context, at time.Time, action, project, subject, reason string) Entry {
	actor, ok := auth.ActorFrom(ctx)
	if !ok {
		actor = auth.System()
	}
	return Entry{Time: at, Actor: actor, Action: action, Project: project, Subject: subject, Reason: reason}
}

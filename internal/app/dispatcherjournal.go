// This file records changes of dispatchers: in the owner history, in the audit log, and as events.

package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// maxSubject is the maximum length of an audit subject, in bytes.
const maxSubject = 1024

// Log is the audit log.
type Log interface {
	// WriteAuditOnce writes an entry unless it exists already.
	WriteAuditOnce(ctx context.Context, e audit.Entry) error
}

// DispatcherJournal implements [dispatch.Journal].
type DispatcherJournal struct {
	events *event.Service
	log    Log
}

var _ dispatch.Journal = DispatcherJournal{}

// NewDispatcherJournal returns a journal.
func NewDispatcherJournal(events *event.Service, log Log) DispatcherJournal {
	return DispatcherJournal{events, log}
}

// OwnerChanged implements [dispatch.Journal]. The loss of a lease is recorded by the next owner.
func (j DispatcherJournal) OwnerChanged(ctx context.Context, c dispatch.OwnerChange) error {
	if c.Outcome == dispatch.Lost {
		return nil
	}
	return j.events.RecordOwner(auth.WithActor(ctx, auth.System()), event.OwnerChange{
		Name: c.Name, Owner: inbox.Owner{Epoch: c.ToEpoch, Holder: c.To}, How: string(c.Outcome),
		Previous: inbox.Owner{Epoch: c.FromEpoch, Holder: c.From}, Execution: c.RunID, Ended: c.Ended, Reason: c.Reason, At: c.At,
	})
}

// Terminated implements [dispatch.Journal].
func (j DispatcherJournal) Terminated(ctx context.Context, t dispatch.Termination) error {
	entry := auditEntry(ctx, t.At, audit.DispatcherTerminate, t.Name, t.WorkflowID, t.Reason, map[string]any{
		"runId": t.RunID, "kind": t.Kind, "by": t.By, "from": t.From, "fromEpoch": t.FromEpoch, "to": t.To, "toEpoch": t.ToEpoch,
	})
	return j.log.WriteAuditOnce(ctx, entry)
}

// Foreign implements [dispatch.Journal]. Every process that finds the run records the same event ID, so that one event is stored.
func (j DispatcherJournal) Foreign(ctx context.Context, f dispatch.ForeignWorkflow) error {
	data, err := json.Marshal(map[string]any{
		"project": f.Name.Project, "taskQueue": f.Name.TaskQueue, "workflowId": f.WorkflowID, "runId": f.RunID, "type": f.Type,
	})
	if err != nil {
		return err
	}
	_, err = event.Platform{Service: j.events}.Publish(ctx, f.Name.Project, []event.Event{{
		ID: "foreign-" + f.RunID, Source: event.DispatcherSource(f.Name.Project, f.Name.TaskQueue), Type: event.Own + "dispatcher.foreign",
		Subject: f.Name.TaskQueue, Time: f.At, DataContentType: "application/json", Data: data,
	}})
	return err
}

// Evicted implements [dispatch.Journal].
func (j DispatcherJournal) Evicted(ctx context.Context, e dispatch.Eviction) error {
	facts := map[string]any{"project": e.Name.Project, "taskQueue": e.Name.TaskQueue, "evicted": e.Evicted, "by": e.By}
	entry := auditEntry(ctx, e.At, audit.WorkerEvict, e.Name, subject(e.Evicted), "no heartbeat", facts)
	_, err := event.Platform{Service: j.events}.Publish(ctx, e.Name.Project, []event.Event{{
		ID:     evictionID(e),
		Source: event.DispatcherSource(e.Name.Project, e.Name.TaskQueue), Type: event.Own + "worker.evicted", Subject: e.Name.TaskQueue,
		Time: e.At, DataContentType: "application/json", Data: entry.Detail,
	}})
	return errors.Join(err, j.log.WriteAuditOnce(ctx, entry))
}

// subject joins worker IDs up to the size of a database index entry; the entry's detail has all of them.
func subject(ids []string) string {
	text := ids[0]
	for i, id := range ids[1:] {
		if len(text)+len(id) > maxSubject {
			return fmt.Sprintf("%s and %d more", text, len(ids)-1-i)
		}
		text += " " + id
	}
	return text
}

// evictionID returns an ID that is the same on every retry of a report, and short for any number of evicted workers.
func evictionID(e dispatch.Eviction) string {
	sum := sha256.Sum256([]byte(strings.Join(e.Evicted, ",")))
	const enough = 8
	return e.At.UTC().Format(time.RFC3339Nano) + "-" + hex.EncodeToString(sum[:enough])
}

func auditEntry(ctx context.Context, at time.Time, action string, name inbox.Name, subject, reason string, facts map[string]any) audit.Entry {
	entry := audit.NewEntry(auth.WithActor(ctx, auth.System()), at, action, name.Project, subject, reason)
	entry.Detail, _ = json.Marshal(facts) //nolint:errchkjson // texts, numbers and a list of texts always encode
	return entry
}

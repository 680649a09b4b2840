// Package journal keeps what became of dispatchers where people and workflows find it: in the history of owners, in the audit log, and
// as events.
package journal

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

// maxSubject is in bytes.
const maxSubject = 1024

// Log is the audit log.
type Log interface {
	// WriteAuditOnce writes an entry that is not there yet.
	WriteAuditOnce(ctx context.Context, e audit.Entry) error
}

// Journal is a dispatch.Journal.
type Journal struct {
	events *event.Service
	log    Log
}

var _ dispatch.Journal = Journal{}

// New returns a journal.
func New(events *event.Service, log Log) Journal { return Journal{events, log} }

// OwnerChanged implements [dispatch.Journal]. That an owner lost its lease is told by who wins it next.
func (j Journal) OwnerChanged(ctx context.Context, c dispatch.OwnerChange) error {
	if c.Outcome == dispatch.Lost {
		return nil
	}
	return j.events.RecordOwner(auth.WithActor(ctx, auth.System()), event.OwnerChange{
		Name: c.Name, Owner: inbox.Owner{Epoch: c.ToEpoch, Holder: c.To}, How: string(c.Outcome),
		Previous: inbox.Owner{Epoch: c.FromEpoch, Holder: c.From}, Execution: c.RunID, Ended: c.Ended, Reason: c.Reason, At: c.At,
	})
}

// Terminated implements [dispatch.Journal].
func (j Journal) Terminated(ctx context.Context, t dispatch.Termination) error {
	entry := entryOf(ctx, t.At, audit.DispatcherTerminate, t.Name, t.WorkflowID, t.Reason, map[string]any{
		"runId": t.RunID, "kind": t.Kind, "by": t.By, "from": t.From, "fromEpoch": t.FromEpoch, "to": t.To, "toEpoch": t.ToEpoch,
	})
	return j.log.WriteAuditOnce(ctx, entry)
}

// Foreign implements [dispatch.Journal]. The event has one ID for the run, whichever processes find it.
func (j Journal) Foreign(ctx context.Context, f dispatch.ForeignWorkflow) error {
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
func (j Journal) Evicted(ctx context.Context, e dispatch.Eviction) error {
	facts := map[string]any{"project": e.Name.Project, "taskQueue": e.Name.TaskQueue, "evicted": e.Evicted, "by": e.By}
	entry := entryOf(ctx, e.At, audit.WorkerEvict, e.Name, subject(e.Evicted), "no heartbeat", facts)
	_, err := event.Platform{Service: j.events}.Publish(ctx, e.Name.Project, []event.Event{{
		ID:     evictionID(e),
		Source: event.DispatcherSource(e.Name.Project, e.Name.TaskQueue), Type: event.Own + "worker.evicted", Subject: e.Name.TaskQueue,
		Time: e.At, DataContentType: "application/json", Data: entry.Detail,
	}})
	return errors.Join(err, j.log.WriteAuditOnce(ctx, entry))
}

// subject names as many workers as the index of a database takes; the details name all.
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

// evictionID is the same whenever the eviction is told again, and short however many workers were evicted at once.
func evictionID(e dispatch.Eviction) string {
	sum := sha256.Sum256([]byte(strings.Join(e.Evicted, ",")))
	const enough = 8
	return e.At.UTC().Format(time.RFC3339Nano) + "-" + hex.EncodeToString(sum[:enough])
}

func entryOf(ctx context.Context, at time.Time, action string, name inbox.Name, subject, reason string, facts map[string]any) audit.Entry {
	entry := audit.NewEntry(auth.WithActor(ctx, auth.System()), at, action, name.Project, subject, reason)
	entry.Detail, _ = json.Marshal(facts) //nolint:errchkjson // texts, numbers and a list of texts always encode
	return entry
}

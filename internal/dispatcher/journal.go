package dispatcher

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// maxSubject is the maximum length of an audit subject, in bytes.
const maxSubject = 1024

// JournalLog is the audit log, as the journal uses it.
type JournalLog interface {
	// WriteAuditOnce writes an entry unless it exists already.
	WriteAuditOnce(ctx context.Context, e audit.Entry) error
}

// Journal records the changes of dispatchers: in the owner history, in the audit log, and as events. It implements
// [dispatchtype.Journal].
type Journal struct {
	events *event.Service
	log    JournalLog
}

var _ dispatchtype.Journal = Journal{}

// NewJournal returns a journal.
func NewJournal(events *event.Service, log JournalLog) Journal { return Journal{events, log} }

// OwnerChanged implements [dispatchtype.Journal]. The loss of a lease is recorded by the next owner.
func (j Journal) OwnerChanged(ctx context.Context, c dispatchtype.OwnerChange) error {
	if c.Outcome == dispatchtype.Lost {
		return nil
	}
	return j.events.RecordOwner(auth.WithActor(ctx, auth.System()), c)
}

// Terminated implements [dispatchtype.Journal].
func (j Journal) Terminated(ctx context.Context, t dispatchtype.Termination) error {
	entry := auditEntry(ctx, t.At, audit.DispatcherTerminate, t.Name, t.WorkflowID, t.Reason, map[string]any{
		"runId": t.RunID, "kind": t.Kind, "by": t.By, "from": t.From.Holder, "fromEpoch": t.From.Epoch, "to": t.To.Holder,
		"toEpoch": t.To.Epoch,
	})
	return j.log.WriteAuditOnce(ctx, entry)
}

// Foreign implements [dispatchtype.Journal]. Every process that finds the run records the same event ID, so that one
// event is stored.
func (j Journal) Foreign(ctx context.Context, f dispatchtype.ForeignWorkflow) error {
	data, err := json.Marshal(map[string]any{
		"project": f.Name.Project, "taskQueue": f.Name.TaskQueue, "workflowId": f.WorkflowID, "runId": f.RunID,
		"type": f.Type,
	})
	if err != nil {
		return err
	}
	_, err = event.Platform{Service: j.events}.Publish(ctx, f.Name.Project, []event.Event{{
		ID: "foreign-" + f.RunID, Source: event.DispatcherSource(f.Name.Project, f.Name.TaskQueue), Type: event.Own +
			"dispatcher.foreign",
		Subject: f.Name.TaskQueue, Time: f.At, DataContentType: "application/json", Data: data,
	}})
	return err
}

// Evicted implements [dispatchtype.Journal].
func (j Journal) Evicted(ctx context.Context, e dispatchtype.Eviction) error {
	facts := map[string]any{"project": e.Name.Project, "taskQueue": e.Name.TaskQueue, "evicted": e.Evicted, "by": e.By}
	entry := auditEntry(ctx, e.At, audit.WorkerEvict, e.Name, subject(e.Evicted), "no heartbeat", facts)
	_, err := event.Platform{Service: j.events}.Publish(ctx, e.Name.Project, []event.Event{{
		ID:     evictionID(e),
		Source: event.DispatcherSource(e.Name.Project, e.Name.TaskQueue), Type: event.WorkerEvicted,
		Subject: e.Name.TaskQueue,
		Time:    e.At, DataContentType: "application/json", Data: entry.Detail,
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
func evictionID(e dispatchtype.Eviction) string {
	sum := sha256.Sum256([]byte(strings.Join(e.Evicted, ",")))
	const enough = 8
	return e.At.UTC().Format(time.RFC3339Nano) + "-" + hex.EncodeToString(sum[:enough])
}

func auditEntry(ctx context.Context, at time.Time, action string, name inbox.Name, subject, reason string,
	facts map[string]any) audit.Entry {
	entry := audit.NewEntry(auth.WithActor(ctx, auth.System()), at, action, name.Project, subject, reason)
	entry.Detail, _ = json.Marshal(facts) //nolint:errchkjson // texts, numbers and a list of texts always encode
	return entry
}

package event

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/signalbox-dev/signalbox/internal/audit"
)

// OwnerChanged is the type of the event that tells of a dispatcher's new owner. Its source is [DispatcherSource].
const OwnerChanged = Own + "dispatcher.owner.changed"

// DispatcherSource is the source of the events of a project's dispatcher.
func DispatcherSource(project, taskQueue string) string {
	return "/projects/" + project + "/dispatchers/" + taskQueue
}

// RunSource is the source of a run's events that do not say another; workflow is "namespace/name".
func RunSource(project, workflow, runID string) string {
	return "/projects/" + project + "/workflows/" + workflow + "/runs/" + runID
}

// RecordOwner writes a change of a dispatcher's owner: into the history and the audit log, and as an event that others can act
// on. Recording it again changes nothing.
func (s *Service) RecordOwner(ctx context.Context, c OwnerChange) error {
	if c.At.IsZero() {
		c.At = s.opts.Now()
	}
	tell, err := tellOwner(c)
	if err != nil {
		return err
	}
	entry := audit.NewEntry(ctx, c.At, audit.DispatcherChangeOwner, c.Name.Project, "dispatcher-"+c.Name.Project+"-"+c.Name.TaskQueue, c.Reason)
	entry.Detail = tell.Data
	tell.Actor = entry.Actor.Name
	if err := s.store.RecordOwner(ctx, c, tell, entry); err != nil {
		return err
	}
	s.hints.Notify(c.Name.Project)
	return nil
}

// tellOwner is the event of a change of owner.
func tellOwner(c OwnerChange) (Event, error) {
	type owner struct {
		ServerID string `json:"serverId"`
		Epoch    int64  `json:"epoch"`
	}
	data := struct {
		Project   string `json:"project"`
		TaskQueue string `json:"taskQueue"`
		How       string `json:"how"`
		Owner     owner  `json:"owner"`
		Previous  *owner `json:"previous,omitempty"`
		Execution string `json:"execution,omitempty"`
		Ended     string `json:"ended,omitempty"`
		Reason    string `json:"reason,omitempty"`
	}{
		Project: c.Name.Project, TaskQueue: c.Name.TaskQueue, How: c.How, Owner: owner{c.Owner.Holder, c.Owner.Epoch},
		Execution: c.Execution, Ended: c.Ended, Reason: c.Reason,
	}
	if c.Previous.Epoch > 0 || c.Previous.Holder != "" {
		data.Previous = &owner{c.Previous.Holder, c.Previous.Epoch}
	}
	text, err := json.Marshal(data)
	if err != nil {
		return Event{}, fmt.Errorf("encoding the owner of dispatcher %q: %w", c.Name, err)
	}
	return Event{
		Project: c.Name.Project, ID: strconv.FormatInt(c.Owner.Epoch, 10) + "-" + c.Execution,
		Source: DispatcherSource(c.Name.Project, c.Name.TaskQueue), Type: OwnerChanged, Subject: c.Name.TaskQueue,
		Time: c.At.UTC(), DataContentType: "application/json", Data: text, Status: Pending,
	}, nil
}

// Emission is an event that a run gives.
type Emission struct {
	Project, Workflow, RunID string
	// Key is the entry into the step that gives it: giving it again is a duplicate.
	Key string
	// Event needs a type. ID and source are derived from the run and the key where they are empty.
	Event Event
}

// complete is the event with what it does not say itself, other than its time.
func (e Emission) complete() Event {
	out := e.Event
	if out.ID == "" {
		const version = 8
		out.ID = uuid.NewHash(sha256.New(), uuid.Nil, []byte("signalbox emit\n"+e.RunID+"\n"+e.Key), version).String()
	}
	if out.Source == "" {
		out.Source = RunSource(e.Project, e.Workflow, e.RunID)
	}
	return out
}

// EmitFromRun commits an event that a run gives, and returns what was committed.
func (s *Service) EmitFromRun(ctx context.Context, e Emission) (Event, Accepted, error) {
	out := e.complete()
	if out.Time.IsZero() {
		out.Time = s.opts.Now().UTC()
	}
	accepted, err := s.Publish(ctx, e.Project, []Event{out})
	if err != nil {
		return Event{}, Accepted{}, err
	}
	out.Position = accepted[0].Position
	return out, accepted[0], nil
}

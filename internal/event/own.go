package event

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/internal/audit"
)

// OwnerChanged is the type of the event that reports a dispatcher's new owner. Its source is [DispatcherSource].
const OwnerChanged = Own + "dispatcher.owner.changed"

// WorkerEvicted is the type of the event that reports workers without heartbeats.
const WorkerEvicted = Own + "worker.evicted"

// The types of the events that report the beginning and the end of an outage of Temporal, once for all servers. They
// are published only in projects with a webhook that may receive them.
const (
	ConnectionDown = Own + "connection.down"
	ConnectionUp   = Own + "connection.up"
)

// DispatcherSource returns the source of the events of a project's dispatcher.
func DispatcherSource(project, taskQueue string) string {
	return "/projects/" + project + "/dispatchers/" + taskQueue
}

// RecordOwner writes a change of a dispatcher's owner to the history and the audit log, and publishes an event about
// it. Recording it again changes nothing.
func (s *Service) RecordOwner(ctx context.Context, c dispatchtype.OwnerChange) error {
	if c.At.IsZero() {
		c.At = s.opts.Now()
	}
	published, err := ownerEvent(c)
	if err != nil {
		return err
	}
	entry := audit.NewEntry(ctx, c.At, audit.DispatcherChangeOwner, c.Name.Project, c.Name.DispatcherID(), c.Reason)
	entry.Detail = published.Data
	published.Actor = entry.Actor.Name
	if err := s.store.RecordOwner(ctx, c, published, entry); err != nil {
		return err
	}
	s.hints.Notify(c.Name.Project)
	return nil
}

// ownerEvent returns the event of a change of owner.
func ownerEvent(c dispatchtype.OwnerChange) (Event, error) {
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
		Project: c.Name.Project, TaskQueue: c.Name.TaskQueue, How: string(c.Outcome), Owner: owner{c.To.Holder, c.To.Epoch},
		Execution: c.RunID, Ended: c.Ended, Reason: c.Reason,
	}
	if c.From.Epoch > 0 || c.From.Holder != "" {
		data.Previous = &owner{c.From.Holder, c.From.Epoch}
	}
	text, err := json.Marshal(data)
	if err != nil {
		return Event{}, fmt.Errorf("encoding the owner of dispatcher %q: %w", c.Name, err)
	}
	return Event{
		Project: c.Name.Project, ID: strconv.FormatInt(c.To.Epoch, 10) + "-" + c.RunID,
		Source: DispatcherSource(c.Name.Project, c.Name.TaskQueue), Type: OwnerChanged, Subject: c.Name.TaskQueue,
		Time: c.At.UTC(), DataContentType: "application/json", Data: text, Status: Pending,
	}, nil
}

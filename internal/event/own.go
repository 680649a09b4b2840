package event

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/signalbox-dev/signalbox/internal/audit"
)

// OwnerChanged is the type of the event that reports a dispatcher's new owner. Its source is [DispatcherSource].
const OwnerChanged = Own + "dispatcher.owner.changed"

// DispatcherSource returns the source of the events of a project's dispatcher.
func DispatcherSource(project, taskQueue string) string {
	return "/projects/" + project + "/dispatchers/" + taskQueue
}

// RecordOwner writes a change of a dispatcher's owner to the history and the audit log, and publishes an event about it.
// Recording it again changes nothing.
func (s *Service) RecordOwner(ctx context.Context, c OwnerChange) error {
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
func ownerEvent(c OwnerChange) (Event, error) {
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

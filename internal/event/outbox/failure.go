package outbox

import (
	"encoding/json"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// maxText is the longest text of a failure in an event, in bytes.
const maxText = 1024

// runData is the data of the events [event.RunFailed] and [event.RunTimedOut].
type runData struct {
	Project  string    `json:"project"`
	RunID    string    `json:"runId"`
	Workflow string    `json:"workflow"`
	Version  string    `json:"version"`
	Status   string    `json:"status"`
	Trigger  string    `json:"trigger"`
	Parent   string    `json:"parentRunId,omitempty"`
	Error    *runError `json:"error,omitempty"`
	// Task is the task whose error ended the run; nil where no task did.
	Task      *runTask  `json:"task,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	EndedAt   time.Time `json:"endedAt"`
	URL       string    `json:"url,omitempty"`
}

// runError has the parts of an error that identify it. The detail is left to the readers of the run: it may quote
// anything.
type runError struct {
	Type   string `json:"type"`
	Status int    `json:"status"`
	Title  string `json:"title,omitempty"`
}

type runTask struct {
	Name    string `json:"name"`
	Pointer string `json:"pointer"`
}

// TypeOf returns the type of the event that reports the end of a run in this status; empty for those that no event
// reports.
func TypeOf(s run.Status) string {
	switch s { //nolint:exhaustive // the others are not failures
	case run.Failed:
		return event.RunFailed
	case run.TimedOut:
		return event.RunTimedOut
	}
	return ""
}

// OfRun returns the event that reports the failure of a run, which is as it is stored. A run ends once, so that its ID
// identifies the event.
func OfRun(r run.Run) event.Event {
	d := runData{
		Project: r.Project, RunID: r.ID, Workflow: r.Workflow, Version: r.Version, Status: string(r.Status),
		Trigger: r.Trigger,
		Parent:  r.Parent.RunID, CreatedAt: r.CreatedAt.UTC(), EndedAt: r.EndedAt.UTC(),
	}
	if !r.StartedAt.IsZero() {
		d.StartedAt = r.StartedAt.UTC()
	}
	if p := r.Error; p != nil {
		d.Error = &runError{Type: clip(p.Type), Status: p.Status, Title: clip(p.Title)}
		if strings.HasPrefix(p.Instance, "/do/") {
			d.Task = &runTask{Name: clip(path.Base(p.Instance)), Pointer: clip(p.Instance)}
		}
	}
	e := event.Event{
		Project: r.Project, ID: r.ID + "-" + string(r.Status), Source: "/projects/" + r.Project + "/runs",
		Type: TypeOf(r.Status), Subject: r.ID, Time: r.EndedAt.UTC(), Data: encode(d),
	}
	if r.AfterFailure {
		e = e.WithAfterFailure()
	}
	return e
}

// deliveryData is the data of the event [event.DeliveryDeadLettered].
type deliveryData struct {
	Project    string `json:"project"`
	DeliveryID string `json:"deliveryId"`
	Kind       string `json:"kind"`
	Workflow   string `json:"workflow,omitempty"`
	Version    string `json:"version,omitempty"`
	RunID      string `json:"runId"`
	Reason     string `json:"reason"`
	Attempts   int    `json:"attempts"`
	// Events are those of the delivery that still exist.
	Events    []eventRef `json:"events"`
	CreatedAt time.Time  `json:"createdAt"`
	EndedAt   time.Time  `json:"endedAt"`
}

type eventRef struct {
	ID       string `json:"id"`
	Source   string `json:"source"`
	Type     string `json:"type"`
	Position int64  `json:"position"`
}

// OfDelivery returns the event that reports that a delivery, with its events, became dead at d.UpdatedAt.
func OfDelivery(d event.Delivery) event.Event {
	data := deliveryData{
		Project: d.Project, DeliveryID: d.ID, Kind: string(d.Kind), Workflow: d.Workflow, Version: d.Version, RunID: d.RunID,
		Reason:   clip(d.Reason),
		Attempts: d.Attempts, Events: []eventRef{}, CreatedAt: d.CreatedAt.UTC(), EndedAt: d.UpdatedAt.UTC(),
	}
	e := event.Event{
		Project: d.Project, ID: d.ID + "-dead-" + strconv.FormatInt(d.UpdatedAt.UnixMicro(), 10), Source: "/projects/" +
			d.Project + "/deliveries",
		Type: event.DeliveryDeadLettered, Subject: d.ID, Time: d.UpdatedAt.UTC(),
	}
	for _, of := range d.Events {
		if of.ID == "" {
			continue // deleted
		}
		data.Events = append(data.Events, eventRef{of.ID, of.Source, of.Type, of.Position})
		if event.ReportsFailure(of.Type) {
			e = e.WithAfterFailure()
		}
	}
	e.Data = encode(data)
	return e
}

func encode(data any) json.RawMessage {
	text, _ := json.Marshal(data) //nolint:errchkjson // texts, numbers and times always encode
	return text
}

func clip(s string) string { return apperror.Excerpt(s, maxText) }

package diagnose

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// The types of the events that announce verdicts. Their source is [Source] of the project, their subject the run's ID.
const (
	EventStuck   = event.Own + "run.stuck"
	EventUnstuck = event.Own + "run.unstuck"
)

// Source returns the source of the events about a project's runs.
func Source(project string) string { return "/projects/" + project + "/runs" }

// eventData is the data of both events.
type eventData struct {
	RunID    string    `json:"runId"`
	Workflow string    `json:"workflow,omitempty"`
	Version  string    `json:"version,omitempty"`
	Code     string    `json:"code"`
	Cause    string    `json:"cause,omitempty"`
	Since    time.Time `json:"since"`
	Detail   string    `json:"detail,omitempty"`
	Advice   string    `json:"advice,omitempty"`
	// Previous is the previous code, where it differs.
	Previous string `json:"previous,omitempty"`
	// Status is the run's status when it was no longer stuck.
	Status string `json:"status,omitempty"`
}

// stuckEvents returns the events of a new verdict: none where the previous verdict has the same code and since.
func stuckEvents(c Candidate, before StoredVerdict, was bool, v Verdict, now time.Time) (events []event.Event) {
	data := eventData{
		RunID: c.ID, Workflow: c.Workflow, Version: c.Version, Code: v.Code, Cause: v.Cause, Since: v.Since.UTC(), Detail: v.Detail, Advice: v.Advice,
	}
	switch same := was && before.Since.Equal(v.Since.Truncate(time.Microsecond)); {
	case same && before.Code == v.Code:
		return nil
	case same:
		data.Previous = before.Code
	case was:
		events = unstuckEvents(before, now)
	}
	return append(events, newEvent(EventStuck, c.Project, "", data, now))
}

// unstuckEvents returns the event of a run that is no longer stuck.
func unstuckEvents(g StoredVerdict, now time.Time) []event.Event {
	return []event.Event{newEvent(EventUnstuck, g.Project, "-over", eventData{
		RunID: g.RunID, Workflow: g.Workflow, Version: g.Version, Code: g.Code, Since: g.Since.UTC(), Status: g.Status,
	}, now)}
}

// newEvent returns an event. The store appends the run's sequence number to its ID, so that each change has its own event.
func newEvent(kind, project, suffix string, d eventData, now time.Time) event.Event {
	data, _ := json.Marshal(d) //nolint:errchkjson // texts and times always encode
	return event.Event{
		Project: project, ID: d.RunID + "-" + strconv.FormatInt(d.Since.UnixMicro(), 10) + "-" + d.Code + suffix,
		Source: Source(project), Type: kind, Subject: d.RunID, Time: now.UTC(), DataContentType: "application/json", Data: data,
		Actor: auth.System().Name, Status: event.Pending,
	}
}

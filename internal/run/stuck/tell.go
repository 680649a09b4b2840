package stuck

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/run/stuck/verdict"
)

// The types of the events that tell of verdicts. Their source is that of the project's runs, their subject the run.
const (
	EventStuck   = event.Own + "run.stuck"
	EventUnstuck = event.Own + "run.unstuck"
)

// Source is the source of the events that tell of a project's runs.
func Source(project string) string { return "/projects/" + project + "/runs" }

// told is the data of both events.
type told struct {
	RunID    string    `json:"runId"`
	Workflow string    `json:"workflow,omitempty"`
	Version  string    `json:"version,omitempty"`
	Code     string    `json:"code"`
	Cause    string    `json:"cause,omitempty"`
	Since    time.Time `json:"since"`
	Detail   string    `json:"detail,omitempty"`
	Advice   string    `json:"advice,omitempty"`
	// Previous is the code of before, where it is another one.
	Previous string `json:"previous,omitempty"`
	// Status is the run's when it was no longer stuck.
	Status string `json:"status,omitempty"`
}

// given are the events of a verdict: none where the one before said the same.
func given(c Candidate, before Given, was bool, v verdict.Verdict, now time.Time) (events []event.Event) {
	t := told{RunID: c.ID, Workflow: c.Workflow, Version: c.Version, Code: v.Code, Cause: v.Cause, Since: v.Since.UTC(), Detail: v.Detail, Advice: v.Advice}
	switch again := was && before.Since.Equal(v.Since.Truncate(time.Microsecond)); {
	case again && before.Code == v.Code:
		return nil
	case again:
		t.Previous = before.Code
	case was:
		events = takenBack(before, now)
	}
	return append(events, tell(EventStuck, c.Project, "", t, now))
}

// takenBack is the event of a run that is no longer stuck.
func takenBack(g Given, now time.Time) []event.Event {
	return []event.Event{tell(EventUnstuck, g.Project, "-over", told{
		RunID: g.RunID, Workflow: g.Workflow, Version: g.Version, Code: g.Code, Since: g.Since.UTC(), Status: g.Status,
	}, now)}
}

// tell makes an event. The store ends its ID with the run's sequence, so that each change has an event of its own.
func tell(kind, project, suffix string, t told, now time.Time) event.Event {
	data, _ := json.Marshal(t) //nolint:errchkjson // texts and times always encode
	return event.Event{
		Project: project, ID: t.RunID + "-" + strconv.FormatInt(t.Since.UnixMicro(), 10) + "-" + t.Code + suffix,
		Source: Source(project), Type: kind, Subject: t.RunID, Time: now.UTC(), DataContentType: "application/json", Data: data,
		Actor: auth.System().Name, Status: event.Pending,
	}
}

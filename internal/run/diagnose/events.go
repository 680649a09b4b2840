package diagnose

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// The types of the events that announce verdicts. Their source is [Source] of the project. The subject is the run's ID,
// of the events about many runs the code of their verdicts.
const (
	EventStuck       = event.Own + "run.stuck"
	EventUnstuck     = event.Own + "run.unstuck"
	EventManyStuck   = event.Own + "runs.stuck"
	EventManyUnstuck = event.Own + "runs.unstuck"
)

// maxSingle is how many runs of a project with the same code have an event each.
const maxSingle = 20

// group is what the runs of one cause have in common.
type group struct{ project, code string }

// announced is a verdict that begins or ends: the data of its event, and the place of its change among those of the
// project.
type announced struct {
	data   eventData
	change int
}

// Source returns the source of the events about a project's runs.
func Source(project string) string { return "/projects/" + project + "/runs" }

// eventData is the data of the events about one run.
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

// manyData is the data of the events about many runs.
type manyData struct {
	Code string `json:"code"`
	// Total is how many runs of the project have the code now.
	Total  int       `json:"total"`
	Since  time.Time `json:"since"`
	Detail string    `json:"detail,omitempty"`
	Advice string    `json:"advice,omitempty"`
}

// stuckData returns the data of the event of a verdict.
func stuckData(c Candidate, v Verdict) eventData {
	return eventData{
		RunID: c.ID, Workflow: c.Workflow, Version: c.Version, Code: v.Code, Cause: v.Cause, Since: v.Since.UTC(),
		Detail: v.Detail, Advice: v.Advice,
	}
}

// unstuckData returns the data of the event of a run that is no longer stuck.
func unstuckData(g StoredVerdict) eventData {
	return eventData{RunID: g.RunID, Workflow: g.Workflow, Version: g.Version, Code: g.Code, Since: g.Since.UTC(),
		Status: g.Status}
}

// announce adds the events to the changes. While more than [maxSingle] runs of a project have the same code, their
// cause is one: one event announces them, another one follows when there are ten times as many, and one says that they
// are few again.
func (p *pass) announce() {
	for of, list := range p.begun {
		level, announced := p.w.levels[of]
		if !announced {
			level = levelOf(p.before[of])
		}
		switch now := levelOf(p.after[of]); {
		case now == 0:
			p.attachEach(EventStuck, of, list)
		case now > level:
			p.w.levels[of] = level
			p.attachMany(EventManyStuck, of, list)
		}
	}
	for of, list := range p.ended {
		switch many := levelOf(p.before[of]) > 0 || p.w.levels[of] > 0; {
		case levelOf(p.after[of]) > 0:
		case many:
			p.w.levels[of] = max(p.w.levels[of], 1)
			p.attachMany(EventManyUnstuck, of, list)
		default:
			p.attachEach(EventUnstuck, of, list)
		}
	}
}

// levelOf is 0 for up to [maxSingle] runs, 1 for up to ten times as many, and so on.
func levelOf(runs int) (level int) {
	for most := maxSingle; runs > most; most *= 10 {
		level++
	}
	return level
}

// attachEach adds an event for each run.
func (p *pass) attachEach(kind string, of group, list []announced) {
	for _, one := range list {
		p.attach(of, one, newEvent(kind, of.project, one.data, p.now))
	}
}

// attachMany adds one event for all runs with the code to the change of the run that has waited for the longest time.
// Its detail is that of this run.
func (p *pass) attachMany(kind string, of group, list []announced) {
	first := slices.MinFunc(list, func(a, b announced) int { return a.data.Since.Compare(b.data.Since) })
	p.attach(of, first, newManyEvent(kind, of, manyData{
		Code: of.code, Total: p.after[of], Since: first.data.Since, Detail: first.data.Detail, Advice: first.data.Advice,
	}, p.now))
	p.carriers[of] = first.data.RunID
}

func (p *pass) attach(of group, one announced, e event.Event) {
	c := &p.changes[of.project][one.change]
	c.Events = append(c.Events, e)
}

// noteAnnounced remembers which groups were announced. The store skips the change of a run that has changed since the
// decision, with its event: then the group is announced in the next pass.
func (p *pass) noteAnnounced(changed map[string]bool) {
	for of, carrier := range p.carriers {
		switch now := levelOf(p.after[of]); {
		case !changed[carrier]:
		case now == 0:
			delete(p.w.levels, of)
		default:
			p.w.levels[of] = now
		}
	}
}

// newEvent returns the event of one run. The store appends the run's sequence number to its ID, so that each change has
// its own event.
func newEvent(kind, project string, d eventData, now time.Time) event.Event {
	id := d.RunID + "-" + strconv.FormatInt(d.Since.UnixMicro(), 10) + "-" + d.Code
	if kind == EventUnstuck {
		id += "-over"
	}
	return ownEvent(project, id, kind, d.RunID, d, now)
}

// newManyEvent returns the event of many runs with one code.
func newManyEvent(kind string, of group, d manyData, now time.Time) event.Event {
	return ownEvent(of.project, kind+"-"+of.code+"-"+strconv.FormatInt(now.UnixMicro(), 10), kind, of.code, d, now)
}

func ownEvent(project, id, kind, subject string, data any, now time.Time) event.Event {
	text, _ := json.Marshal(data) //nolint:errchkjson // texts and times always encode
	return event.Event{
		Project: project, ID: id, Source: Source(project), Type: kind, Subject: subject, Time: now.UTC(),
		DataContentType: "application/json", Data: text,
		Actor: auth.System().Name, Status: event.Pending,
	}
}

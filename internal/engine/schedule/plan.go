package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/internal/event"
)

// prefix begins the IDs of the platform's schedules in Temporal. Names hold no slash, so that no two give one ID.
const prefix = "signalbox-schedule/"

// ID is the ID of a workflow's schedule in Temporal.
func ID(project, workflow string) string { return prefix + project + "/" + workflow }

// projectOf is the project of a schedule of the platform's; empty for others.
func projectOf(id string) string {
	rest, ours := strings.CutPrefix(id, prefix)
	project, _, _ := strings.Cut(rest, "/")
	if !ours {
		return ""
	}
	return project
}

// found is a schedule as Temporal lists it.
type found struct {
	ID, Note string
	Paused   bool
}

// note tells people what a schedule is for, and us whether it is still what it should be.
func note(t event.Timer) string {
	when := fmt.Sprintf("cron %q (UTC)", t.Spec.Cron)
	if t.Spec.Cron == "" {
		when = fmt.Sprintf("every %s from %s", t.Spec.Every, t.Since.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("workflow %s@%s of project %s: %s", t.Workflow, t.Version, t.Project, when)
}

// kind is what is to be done about a schedule.
type kind string

const (
	create kind = "create"
	update kind = "update"
	remove kind = "remove"
)

// act is one change to be made in Temporal.
type act struct {
	Kind  kind
	ID    string
	Timer event.Timer // none for remove
}

// plan compares what there is with what the timers want. Schedules of projects that are not ours are left alone: somebody
// else may keep them in this namespace. It is in the order of the IDs.
func plan(timers []event.Timer, there []found, ours func(project string) bool) []act {
	var acts []act
	wanted := map[string]bool{}
	known := make(map[string]found, len(there))
	for _, f := range there {
		known[f.ID] = f
	}
	for _, t := range timers {
		if t.Spec.Follows() {
			continue
		}
		id := ID(t.Project, t.Workflow)
		wanted[id] = true
		switch f, exists := known[id]; {
		case !exists:
			acts = append(acts, act{create, id, t})
		case f.Note != note(t) || f.Paused != t.Paused:
			acts = append(acts, act{update, id, t})
		}
	}
	for _, f := range there {
		if !wanted[f.ID] && ours(projectOf(f.ID)) {
			acts = append(acts, act{Kind: remove, ID: f.ID})
		}
	}
	slices.SortFunc(acts, func(a, b act) int { return cmp.Compare(a.ID, b.ID) })
	return acts
}

// phase is the offset that lets intervals, which Temporal counts from the year 1970, begin at the time of publication.
func phase(t event.Timer) time.Duration {
	return time.Duration(t.Since.UnixNano() % int64(t.Spec.Every))
}

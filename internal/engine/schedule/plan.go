package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/firing"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/event"
)

// prefix is the prefix of the IDs of the platform's schedules in Temporal. Names contain no slash, so no two workflows
// have the same ID.
const prefix = "signalbox-schedule/"

// ID returns the ID of a workflow's schedule in Temporal.
func ID(project, workflow string) string { return prefix + project + "/" + workflow }

// projectOf returns the project of a schedule of the platform. It is empty for other schedules.
func projectOf(id string) string {
	rest, found := strings.CutPrefix(id, prefix)
	project, _, _ := strings.Cut(rest, "/")
	if !found {
		return ""
	}
	return project
}

// listed is a schedule as Temporal lists it.
type listed struct {
	ID, Note string
	Paused   bool
}

// note describes a schedule, whose arguments were sealed with a key; empty: they are not sealed. It also shows whether
// the schedule in Temporal is up to date.
func note(t event.Timer, key string) string {
	settings, usual := t.Settings(), event.Defaults()
	when := fmt.Sprintf("cron %q (%s)", t.Spec.Cron, settings.TimeZone)
	if t.Spec.Cron == "" {
		when = fmt.Sprintf("every %s from %s", t.Spec.Every, t.Since.UTC().Format(time.RFC3339))
	}
	if settings.Overlap != usual.Overlap {
		when += fmt.Sprintf(", overlap: %s", settings.Overlap)
	}
	if *settings.Jitter != 0 {
		when += fmt.Sprintf(", jitter up to %s", *settings.Jitter)
	}
	if *settings.CatchUp != *usual.CatchUp {
		when += fmt.Sprintf(", caught up within %s", *settings.CatchUp)
	}
	if until := t.Override.PausedUntil; !until.IsZero() {
		when += ", not before " + until.UTC().Format(time.RFC3339)
	}
	text := fmt.Sprintf("workflow %s@%s of project %s: %s, by %s", t.Workflow, t.Version, t.Project, when,
		contract.FireQueue)
	if key != "" {
		text += fmt.Sprintf(", sealed with key %q", key)
	}
	return text
}

// changeKind is the kind of a change of a schedule.
type changeKind string

const (
	create changeKind = "create"
	update changeKind = "update"
	remove changeKind = "remove"
)

// change is one change of a schedule in Temporal.
type change struct {
	Kind  changeKind
	ID    string
	Timer event.Timer // none for remove
	Note  string      // none for remove
}

// plan returns the changes that align the existing schedules with the timers and the active sealing key, ordered by ID.
// It leaves schedules of unknown projects alone: another installation may use the same namespace.
func plan(timers []event.Timer, existing []listed, key string, owned func(project string) bool) []change {
	var changes []change
	desired := map[string]bool{}
	byID := make(map[string]listed, len(existing))
	for _, f := range existing {
		byID[f.ID] = f
	}
	for _, t := range timers {
		if t.Spec.Follows() {
			continue
		}
		id := ID(t.Project, t.Workflow)
		desired[id] = true
		text := note(t, key)
		switch f, exists := byID[id]; {
		case !exists:
			changes = append(changes, change{create, id, t, text})
		case f.Note != text || f.Paused != t.Paused:
			changes = append(changes, change{update, id, t, text})
		}
	}
	for _, f := range existing {
		if !desired[f.ID] && owned(projectOf(f.ID)) {
			changes = append(changes, change{Kind: remove, ID: f.ID})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.ID, b.ID) })
	return changes
}

// policy returns how Temporal treats a fire that is due while the fire workflow of an earlier one is open.
func policy(o dsl.Overlap) enumspb.ScheduleOverlapPolicy {
	switch o {
	case dsl.OverlapSkip:
		return enumspb.SCHEDULE_OVERLAP_POLICY_SKIP
	case dsl.OverlapQueueOne:
		return enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE
	case dsl.OverlapCancelOpen:
		return enumspb.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER
	case dsl.OverlapAllow:
	}
	return enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL
}

// desired returns the schedule of a timer in Temporal. With an overlap other than allow, a fire workflow stays open
// until the run that it started has ended, so that Temporal's policy applies to the runs.
func desired(c change) client.Schedule {
	t := c.Timer
	settings, when := t.Settings(), t.Firing()
	spec := client.ScheduleSpec{Jitter: *settings.Jitter, StartAt: when.Start}
	if t.Spec.Cron != "" {
		spec.CronExpressions, spec.TimeZoneName = []string{firing.Lists(t.Spec.Cron)}, settings.TimeZone
	} else {
		spec.Intervals = []client.ScheduleIntervalSpec{{Every: t.Spec.Every, Offset: when.Phase()}}
	}
	return client.Schedule{
		Spec: &spec,
		Action: &client.ScheduleWorkflowAction{
			ID: c.ID + "/fire", Workflow: fireWorkflow, TaskQueue: contract.FireQueue,
			Args: []any{Fire{Project: t.Project, Workflow: t.Workflow, Version: t.Version, Cron: t.Spec.Cron, Zone: when.Zone,
				Waits: settings.Overlap != dsl.OverlapAllow}},
		},
		Policy: &client.SchedulePolicies{Overlap: policy(settings.Overlap), CatchupWindow: *settings.CatchUp},
		State:  &client.ScheduleState{Note: c.Note, Paused: t.Paused},
	}
}

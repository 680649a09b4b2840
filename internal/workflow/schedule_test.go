package workflow_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// publishing is a store that records the published version.
type publishing struct {
	workflow.Store
	version workflow.Version
	entry   audit.Entry
}

func (p *publishing) Publish(_ context.Context, v workflow.Version, _ func(a, b string) bool,
	e audit.Entry) (workflow.Version, bool, error) {
	p.version, p.entry = v, e
	return v, true, nil
}

func (p *publishing) GetWorkflow(context.Context, string, string) (workflow.Workflow, error) {
	return workflow.Workflow{}, nil
}

func (p *publishing) GetProject(context.Context, string) (project.Project, error) {
	return project.Project{}, nil
}

func TestPublishStoresTriggerAndTimer(t *testing.T) {
	t.Parallel()
	typed := event.Filter{With: map[string]event.Value{"type": {Literal: json.RawMessage(`"paid"`)}}}
	large, keyed := typed, typed
	large.With = map[string]event.Value{"type": {Literal: json.RawMessage(`"paid"`)}, "data": {Expr: ".total > 10"}}
	keyed.Correlate = map[string]event.Key{
		"order": {From: ".data.order", Expect: json.RawMessage(`"o-1"`)}, "room": {From: ".data.room"}}
	timed := &event.Spec{Timed: "/projects/default/workflows/examples/hello/schedule"}
	tests := map[string]struct {
		schedule string
		spec     *event.Spec
		timer    *event.TimerSpec
	}{
		"requests only": {"", nil, nil},
		"an event": {"{on: {one: {with: {type: paid}}}}", &event.Spec{Mode: event.One, Filters: []event.Filter{typed}},
			nil},
		"any event": {"{on: {any: []}}", &event.Spec{Mode: event.Any}, nil},
		"a condition": {
			"{on: {any: [{with: {type: paid, data: '${ .total > 10 }'}}]}}",
			&event.Spec{Mode: event.Any, Filters: []event.Filter{large}}, nil,
		},
		"several events": {
			"{on: {all: [{with: {type: paid}}, {with: {type: paid}, correlate: {order: {from: .data.order, expect: o-1}, " +
				"room: {from: .data.room}}}]}}",
			&event.Spec{Mode: event.All, Filters: []event.Filter{typed, keyed}}, nil,
		},
		"cron":  {"{cron: '0 8 * * *'}", timed, &event.TimerSpec{Cron: "0 8 * * *"}},
		"every": {"{every: {minutes: 5}}", timed, &event.TimerSpec{Every: 5 * time.Minute}},
		"after": {"{after: PT30S}", timed, &event.TimerSpec{After: 30 * time.Second}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := document(hello, "1.0.0", "1")
			if tt.schedule != "" {
				source = strings.Replace(source, "do:", "schedule: "+tt.schedule+"\ndo:", 1)
			}
			kept := &publishing{}
			_, err := workflow.NewService(kept, kept, dsl.DefaultLimits(), time.Now).Publish(t.Context(), here, workflow.Submission{Source: source}, "ada")
			require.NoError(t, err)
			if tt.spec == nil {
				require.Nil(t, kept.version.Trigger)
			} else {
				var got event.Spec
				require.NoError(t, json.Unmarshal(kept.version.Trigger, &got))
				require.Equal(t, *tt.spec, got)
			}
			if tt.timer == nil {
				require.Nil(t, kept.version.Timer)
			} else {
				var got event.TimerSpec
				require.NoError(t, json.Unmarshal(kept.version.Timer, &got))
				require.Equal(t, *tt.timer, got)
			}
		})
	}
}

// setting is a store that records what operators set of a schedule.
type setting struct {
	workflow.Store

	set   []event.Override
	entry audit.Entry
}

func (s *setting) SetOverride(_ context.Context, _, _ string, o event.Override, e audit.Entry) error {
	s.set, s.entry = append(s.set, o), e
	return nil
}

func TestOperatorsMaySetWhatADocumentMay(t *testing.T) {
	t.Parallel()
	store, now := &setting{}, time.Now()
	service := workflow.NewService(store, &publishing{}, dsl.Limits{}, func() time.Time { return now })
	set := func(spec event.TimerSpec, o event.Override) error {
		_, err := service.SetSchedule(t.Context(), event.Timer{Project: "shop", Workflow: "a/b", Spec: spec}, o)
		return err
	}
	of := func(s event.TimerSettings) event.Override { return event.Override{TimerSettings: s} }
	cron, every := event.TimerSpec{Cron: "0 6 * * *"}, event.TimerSpec{Every: time.Minute}
	whole := event.Override{
		TimerSettings: event.TimerSettings{TimeZone: "Europe/Berlin", Overlap: dsl.OverlapQueueOne, Jitter: new(time.Duration),
			CatchUp: new(dsl.MinCatchUp)},
		PausedUntil: now.Add(time.Hour),
	}
	require.NoError(t, set(cron, whole))
	require.NoError(t, set(every, event.Override{}))
	since := whole
	since.PausedSince = now
	require.Equal(t, []event.Override{since, {}}, store.set)
	later, err := service.SetSchedule(t.Context(), event.Timer{Spec: cron, Override: event.Override{
		PausedUntil: now.Add(time.Minute), PausedSince: now.Add(-time.Hour)}}, whole)
	require.NoError(t, err)
	require.Equal(t, now.Add(-time.Hour), later.Override.PausedSince, "it was paused already")
	require.Equal(t, audit.WorkflowSetSchedule, store.entry.Action)

	for want, tt := range map[string]struct {
		spec event.TimerSpec
		o    event.Override
	}{
		`time_zone "berlin" is not a name of the IANA database: did you mean "Europe/Berlin"?`: {
			cron, of(event.TimerSettings{TimeZone: "berlin"})},
		`time_zone "UTC" concerns only a schedule with cron`: {every, of(event.TimerSettings{TimeZone: "UTC"})},
		`overlap "never" must be one of ["allow" "skip"`:     {every, of(event.TimerSettings{Overlap: "never"})},
		`jitter "24h0m1s" must be from 0s to 24h0m0s`:        {every, of(event.TimerSettings{Jitter: new(dsl.MaxJitter + time.Second)})},
		`jitter "-1s" must be from 0s to 24h0m0s`:            {every, of(event.TimerSettings{Jitter: new(-time.Second)})},
		`catch_up "9s" must be from 10s to 8760h0m0s`:        {every, of(event.TimerSettings{CatchUp: new(9 * time.Second)})},
		`catch_up "8761h0m0s" must be from 10s to 8760h0m0s`: {every, of(event.TimerSettings{CatchUp: new(dsl.MaxCatchUp + time.Hour)})},
	} {
		require.ErrorContains(t, set(tt.spec, tt.o), want)
	}
	require.Len(t, store.set, 3)
}

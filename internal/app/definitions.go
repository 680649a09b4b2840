package app

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/engine/httpcall"
	"github.com/signalbox-dev/signalbox/internal/engine/resource"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/function"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// definitions has the projects and their workflows.
type definitions struct {
	projects  *project.Service
	workflows *workflow.Service
	functions *function.Service
}

func newDefinitions(p *process, s *storage, c *connection, calls *httpcall.Caller) *definitions {
	workflows := workflow.NewService(workflowStore{s.Store, c.engine.Schedules().Wake}, s, documentLimits(p.cfg), time.Now)
	workflows.SetSecretProvider(p.secrets())
	workflows.SetLoader(resource.New(calls))
	workflows.SetRunners(connectedRunners(c.engine.Runners))
	functions := function.NewService(s, s, documentLimits(p.cfg), time.Now)
	workflows.SetFunctions(functions)
	return &definitions{projects: project.NewService(s, time.Now), workflows: workflows, functions: functions}
}

// workflowStore is the workflow store with a callback: every change wakes the schedule keeper.
type workflowStore struct {
	*store.Store

	changed func()
}

// Publish implements [workflow.Store].
func (w workflowStore) Publish(
	ctx context.Context, v workflow.Version, newer func(a, b string) bool, e audit.Entry,
) (workflow.Version, bool, error) {
	defer w.changed()
	return w.Store.Publish(ctx, v, newer, e)
}

// SetPaused implements [workflow.Store].
func (w workflowStore) SetPaused(ctx context.Context, project, name string, paused bool, reason string,
	e audit.Entry) (workflow.Workflow, error) {
	defer w.changed()
	return w.Store.SetPaused(ctx, project, name, paused, reason, e)
}

// SetOverride implements [workflow.Store].
func (w workflowStore) SetOverride(ctx context.Context, project, name string, o event.Override, e audit.Entry) error {
	defer w.changed()
	return w.Store.SetOverride(ctx, project, name, o, e)
}

// DeleteWorkflow implements [workflow.Store].
func (w workflowStore) DeleteWorkflow(ctx context.Context, project, name string, e audit.Entry) error {
	defer w.changed()
	return w.Store.DeleteWorkflow(ctx, project, name, e)
}

// connectedRunners returns the runners of a project that poll.
func connectedRunners(queue func(ctx context.Context, project string) (diagnose.ProgramQueue, error)) workflow.FindRunners {
	return func(ctx context.Context, project string) (list []workflow.Runner, err error) {
		q, err := queue(ctx, project)
		for _, p := range q.Pollers {
			if p.Polls(time.Now()) {
				list = append(list, workflow.Runner{ID: p.Identity, Isolations: p.Isolations})
			}
		}
		return list, err
	}
}

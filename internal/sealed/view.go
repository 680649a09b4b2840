package sealed

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Starter is an engine that starts a run with its original input and the secrets that it inherits.
type Starter struct {
	run.Engine

	sealer *Sealer
}

// Engine returns an engine that starts runs with original inputs.
func (sl *Sealer) Engine(below run.Engine) *Starter { return &Starter{Engine: below, sealer: sl} }

// Start implements [run.Engine]. It fails where the original input cannot be opened.
func (s *Starter) Start(ctx context.Context, r run.Run) (string, error) {
	input, err := s.sealer.Input(ctx, r)
	if err != nil {
		return "", err
	}
	if r.Redacted {
		if r.Secrecy, err = s.sealer.inherited(ctx, r.ID); err != nil {
			return "", err
		}
	}
	r.Input, r.Redacted = input, false
	return s.Engine.Start(ctx, r)
}

// Runs reads redacted runs.
type Runs interface {
	Get(ctx context.Context, project, id string) (run.Run, error)
	Steps(ctx context.Context, project, id string, f run.StepFilter) (run.StepPage, error)
}

// Auditor writes audit entries of actions that change nothing.
type Auditor interface {
	WriteAudit(ctx context.Context, e audit.Entry) error
}

// Viewer returns runs without marks to administrators. It audits each view before it returns.
type Viewer struct {
	sealer *Sealer
	runs   Runs
	audit  Auditor
	now    func() time.Time
}

// NewViewer returns a viewer of runs.
func NewViewer(sl *Sealer, runs Runs, auditor Auditor, now func() time.Time) *Viewer {
	return &Viewer{sealer: sl, runs: runs, audit: auditor, now: now}
}

func (w *Viewer) note(ctx context.Context, project, id, what string) error {
	err := w.audit.WriteAudit(ctx, audit.NewEntry(ctx, w.now(), audit.RunUnredact, project, id, what))
	if err != nil {
		return fmt.Errorf("auditing a view of run %s: %w", id, err)
	}
	return nil
}

// Run returns a run without marks.
func (w *Viewer) Run(ctx context.Context, project, id string) (run.Run, error) {
	if err := auth.Require(ctx, project, auth.Admin); err != nil {
		return run.Run{}, err
	}
	r, err := w.runs.Get(ctx, project, id)
	if err != nil {
		return run.Run{}, err
	}
	if r, err = w.sealer.Open(ctx, r); err != nil {
		return run.Run{}, err
	}
	return r, w.note(ctx, project, id, "the run")
}

// Steps returns steps of a run without marks. A text of the filter is searched in the redacted values.
func (w *Viewer) Steps(ctx context.Context, project, id string, f run.StepFilter) (run.StepPage, error) {
	if err := auth.Require(ctx, project, auth.Admin); err != nil {
		return run.StepPage{}, err
	}
	page, err := w.runs.Steps(ctx, project, id, f)
	if err != nil || f.Basic {
		return page, err
	}
	if page.Steps, err = w.sealer.OpenSteps(ctx, project, id, page.Steps); err != nil {
		return run.StepPage{}, err
	}
	return page, w.note(ctx, project, id, "its steps")
}

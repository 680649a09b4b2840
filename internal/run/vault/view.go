package vault

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Starter is an engine that starts a run with its original input, whatever its row shows, and with what it has to hide.
type Starter struct {
	run.Engine

	vault *Vault
}

// Engine returns the engine with original inputs in what is started through it.
func (v *Vault) Engine(below run.Engine) *Starter { return &Starter{Engine: below, vault: v} }

// Start implements [run.Engine]. Without the original nothing is started.
func (s *Starter) Start(ctx context.Context, r run.Run) (string, error) {
	input, err := s.vault.Input(ctx, r)
	if err != nil {
		return "", err
	}
	if r.Redacted {
		if r.Secrecy, err = s.vault.inherited(ctx, r.ID); err != nil {
			return "", err
		}
	}
	r.Input, r.Redacted = input, false
	return s.Engine.Start(ctx, r)
}

// Runs are what is shown to everybody.
type Runs interface {
	Get(ctx context.Context, project, id string) (run.Run, error)
	Steps(ctx context.Context, project, id string, after int64, limit int) ([]run.Step, error)
}

// Auditor keeps what nothing else is changed by.
type Auditor interface {
	WriteAudit(ctx context.Context, e audit.Entry) error
}

// Viewer shows runs without marks, to administrators. Each view is audited before it is given.
type Viewer struct {
	vault *Vault
	runs  Runs
	audit Auditor
	now   func() time.Time
}

// NewViewer returns a viewer of runs.
func NewViewer(v *Vault, runs Runs, auditor Auditor, now func() time.Time) *Viewer {
	return &Viewer{vault: v, runs: runs, audit: auditor, now: now}
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
	if r, err = w.vault.Open(ctx, r); err != nil {
		return run.Run{}, err
	}
	return r, w.note(ctx, project, id, "the run")
}

// Steps returns steps of a run without marks.
func (w *Viewer) Steps(ctx context.Context, project, id string, after int64, limit int) ([]run.Step, error) {
	if err := auth.Require(ctx, project, auth.Admin); err != nil {
		return nil, err
	}
	steps, err := w.runs.Steps(ctx, project, id, after, limit)
	if err != nil {
		return nil, err
	}
	if steps, err = w.vault.OpenSteps(ctx, id, steps); err != nil {
		return nil, err
	}
	return steps, w.note(ctx, project, id, "its steps")
}

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jellydator/ttlcache/v3"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/start"
)

// maxCompares limits how often one run is compared at a time: a row that was just rewritten may be behind again.
const maxCompares = 3

// compare compares a run with Temporal and carries out the verdict.
func (p *pass) compare(ctx context.Context, row run.Run, missed int) error {
	for range maxCompares {
		f := p.facts(&row)
		x, err := p.r.engine.Inspect(ctx, row)
		switch {
		case errors.Is(err, run.ErrNotKnown):
			f.Answer, f.Missed = Unknown, missed
		case err != nil:
			return err
		default:
			f.Answer, f.Execution = Known, x
		}
		again, err := p.act(ctx, Decide(f), row, x)
		if err != nil || !again {
			return err
		}
		rows, err := p.r.store.FindRuns(ctx, []string{row.ID})
		if err != nil || len(rows) == 0 {
			return err
		}
		row = rows[0]
	}
	return nil
}

// act carries out a verdict about a run that has a row, and reports whether to compare the run again.
func (p *pass) act(ctx context.Context, v Verdict, row run.Run, x run.Execution) (bool, error) {
	switch v { //nolint:exhaustive // the others need no action, or do not concern a compared run
	case CompareAgain:
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.missed) == 0 {
			p.since = time.Now()
		}
		p.missed[row.ID] = row.Sequence
		return false, nil
	case Finish, CatchUp:
		return false, p.catchUp(ctx, row, x)
	case FollowReset:
		return p.followReset(ctx, row, x)
	case StartAgain:
		return false, p.startAgain(ctx, row)
	case Withhold:
		p.addWithheld(1)
	case FailMissing:
		return false, p.failMissing(ctx, row)
	case ReportReopened:
		return false, p.reportReopened(ctx, row, x)
	}
	return false, nil
}

// startAgain starts a run again. Its caller was answered that the run is queued, so a definite refusal fails the run
// visibly.
func (p *pass) startAgain(ctx context.Context, row run.Run) error {
	c := run.Correction{Kind: run.CorrectionHandedOver, RunID: row.ID, Project: row.Project,
		Detail: "the outcome of its start was not known"}
	if p.dry {
		p.record(ctx, c)
		return nil
	}
	row, err := p.r.store.GetRun(ctx, row.Project, row.ID)
	if err != nil {
		return ignoreNotFound(err)
	}
	f := p.facts(&row)
	if f.Placement == run.PlacementElsewhere {
		f.Answer = Known // otherwise the verdict would not have been StartAgain
	}
	if Decide(f) != StartAgain {
		return nil
	}
	if refusal := p.r.starter.StartAccepted(ctx, row); refusal != nil {
		if start.Classify(refusal) != start.RefusedForGood {
			return refusal
		}
		runError := start.NotStartedError(refusal)
		c.Kind, c.Detail = run.CorrectionNotStarted, runError.Detail
		return p.finishMissing(ctx, row, c, runError, audit.RunStartRefused)
	}
	c.Applied = true
	p.record(ctx, c)
	return p.r.store.WriteAudit(ctx, audit.NewEntry(ctx, p.r.opts.Now(), audit.RunHandOver, row.Project, row.ID, c.Detail))
}

// ignoreNotFound returns nil for a run that was removed in between.
func ignoreNotFound(err error) error {
	if apperror.Is(err, apperror.RunNotFound) {
		return nil
	}
	return err
}

// finishMissing fails a run that has no execution in Temporal.
func (p *pass) finishMissing(ctx context.Context, row run.Run, c run.Correction, runError *run.Error,
	action string) (err error) {
	if !p.dry {
		now := p.r.opts.Now()
		c.Applied, err = p.r.store.FinishMissing(ctx, row.ID, run.Failed, runError, now,
			audit.NewEntry(ctx, now, action, row.Project, row.ID, c.Detail))
		if err != nil || !c.Applied {
			return ignoreNotFound(err)
		}
		p.r.opts.Metrics.Count(ctx, row.Project, string(run.Failed))
	}
	p.record(ctx, c)
	return nil
}

// failMissing fails a run after Temporal has lost its execution.
func (p *pass) failMissing(ctx context.Context, row run.Run) error {
	detail := fmt.Sprintf("Temporal at %s has no execution of this run in namespace %q: it was deleted there, or "+
		"Temporal's data was lost",
		p.view.Here.Address, p.view.Here.Namespace)
	runError := &run.Error{
		Type: run.ErrorTypeExecutionMissing, Status: 500, Title: "Execution missing", Detail: detail, Instance: "/",
	}
	c := run.Correction{Kind: run.CorrectionExecutionMissing, RunID: row.ID, Project: row.Project, Detail: detail}
	return p.finishMissing(ctx, row, c, runError, audit.RunExecutionMissing)
}

// catchUp has a worker bring the row up to the history, including the run's end. The worker audits and counts it.
func (p *pass) catchUp(ctx context.Context, row run.Run, x run.Execution) error {
	if x.Open && row.Stuck != nil && row.Stuck.Cause == run.PayloadMissing {
		return nil // its history cannot be read without the value that is lost; the run is shown with that cause
	}
	c := run.Correction{Kind: run.CorrectionCaughtUp, RunID: row.ID, Project: row.Project,
		Detail: "the row was behind its history"}
	if !x.Open {
		c.Kind, c.Detail = run.CorrectionFinished, fmt.Sprintf("execution %s had ended in Temporal", x.ExecutionID)
	}
	if p.dry {
		p.record(ctx, c)
		return nil
	}
	return p.request(ctx, row.Position, c, false)
}

// request has a worker bring the rows of a run up to Temporal. position is the one that the row has now.
func (p *pass) request(ctx context.Context, position int64, c run.Correction, force bool) error {
	err := p.r.store.RequestRepairs(ctx,
		[]run.RepairRequest{{RunID: c.RunID, Reason: c.Detail, Behind: true, Force: force, Correction: c.Kind}})
	if err != nil {
		return err
	}
	p.r.opts.Requested()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requested = append(p.requested, requested{c, position})
	return nil
}

// followReset empties a row for the execution that a reset made, and has a worker write that execution's progress.
func (p *pass) followReset(ctx context.Context, row run.Run, x run.Execution) (bool, error) {
	c := run.Correction{
		Kind: run.CorrectionResetFollowed, RunID: row.ID, Project: row.Project,
		Detail: fmt.Sprintf("execution %s was reset in Temporal to %s", row.ExecutionID, x.ExecutionID),
	}
	if p.dry {
		p.record(ctx, c)
		return false, nil
	}
	u := run.Update{RunID: row.ID, ExecutionID: x.ExecutionID, State: &run.State{
		Status: row.Status, WaitingKind: row.WaitingKind, Since: row.StatusAt, StartedAt: row.StartedAt,
	}}
	var err error
	c.Applied, err = p.r.store.FollowExecution(ctx, u, row.ExecutionID, x.Left,
		audit.NewEntry(ctx, p.r.opts.Now(), audit.RunFollowReset, row.Project, row.ID, c.Detail))
	if err != nil || !c.Applied {
		return false, err
	}
	p.record(ctx, c)
	return false, p.request(ctx, 0, run.Correction{RunID: row.ID, Project: row.Project, Detail: c.Detail}, true)
}

// reportReopened reports a run that has ended and is open in Temporal, once for each execution.
func (p *pass) reportReopened(ctx context.Context, row run.Run, x run.Execution) error {
	c := run.Correction{
		Kind: run.CorrectionReopened, RunID: row.ID, Project: row.Project,
		Detail: fmt.Sprintf("execution %s is open in Temporal, while the run has ended: %s", x.ExecutionID, row.Status),
	}
	if p.dry {
		p.record(ctx, c)
		return nil
	}
	if p.r.memory.reopened.Has(x.ExecutionID) {
		p.note(c)
		return nil
	}
	before, err := p.r.store.ListAudit(ctx, audit.Filter{
		Project: row.Project, Action: audit.RunReopened, Subject: row.ID, Limit: rowPage,
	})
	if err != nil {
		return err
	}
	for _, e := range before {
		if strings.Contains(e.Reason, x.ExecutionID) {
			p.r.memory.reopened.Set(x.ExecutionID, struct{}{}, ttlcache.NoTTL)
			p.note(c)
			return nil
		}
	}
	if err := p.r.store.WriteAudit(ctx,
		audit.NewEntry(ctx, p.r.opts.Now(), audit.RunReopened, row.Project, row.ID, c.Detail)); err != nil {
		return err
	}
	p.r.memory.reopened.Set(x.ExecutionID, struct{}{}, ttlcache.NoTTL)
	p.record(ctx, c)
	return nil
}

// adoptOrReport adopts an execution that has no row, or reports it as foreign. One that was reported is adopted once
// what it lacked is there.
func (p *pass) adoptOrReport(ctx context.Context, x run.Execution) error {
	if reported := p.r.memory.foreign.Get(x.ExecutionID); reported != nil && !p.dry {
		why, err := p.lacks(ctx, reported.Value())
		if err != nil {
			return err
		}
		if why.text != "" {
			p.addForeign(x, reported.Value(), why)
			return nil
		}
	}
	o, why, err := p.origin(ctx, x)
	if err != nil {
		return err
	}
	f := p.facts(nil)
	f.Execution, f.Origin = x, Ours
	if why.text != "" {
		f.Origin = Foreign
	}
	if Decide(f) == Adopt {
		p.r.memory.foreign.Delete(x.ExecutionID)
		return p.adopt(ctx, x, o)
	}
	p.addForeign(x, o.Identity, why)
	if p.dry {
		return nil
	}
	p.r.memory.foreign.Set(x.ExecutionID, o.Identity, ttlcache.NoTTL)
	p.announce(ctx, run.Correction{
		Kind: run.CorrectionForeign, RunID: x.RunID, Project: o.Project,
		Detail: fmt.Sprintf("execution %s: %s", x.ExecutionID, why.text)})
	return nil
}

// origin reads what started an execution, and why it cannot be adopted.
func (p *pass) origin(ctx context.Context, x run.Execution) (o run.Origin, why lack, err error) {
	if o, err = p.r.engine.Origin(ctx, x.RunID); err != nil && !errors.Is(err, run.ErrNotKnown) {
		return o, lack{}, err
	}
	why, err = p.lacks(ctx, o.Identity)
	return o, why, err
}

// lack is why an execution cannot be adopted; its text is empty where it can be.
type lack struct {
	text string
	// project reports that the project does not exist.
	project bool
}

// lacks returns why a run with this identity cannot be adopted, once per pass for all runs of a document. It has none
// where Temporal does not know it.
func (p *pass) lacks(ctx context.Context, of run.Identity) (lack, error) {
	if of.Project == "" {
		return lack{text: "it was not started by Signalbox, or its first history no longer exists"}, nil
	}
	key := [2]string{of.Project, of.DocumentHash}
	p.mu.Lock()
	why, known := p.lacking[key]
	p.mu.Unlock()
	if known {
		return why, nil
	}
	why, err := p.notStored(ctx, of)
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.lacking[key] = why
	}
	return why, err
}

// notStored returns what the database does not have of that which a run refers to.
func (p *pass) notStored(ctx context.Context, of run.Identity) (lack, error) {
	switch _, err := p.r.store.GetProject(ctx, of.Project); {
	case apperror.Is(err, apperror.ProjectNotFound):
		return lack{text: fmt.Sprintf("its project %q does not exist here", of.Project), project: true}, nil
	case err != nil:
		return lack{}, err
	}
	_, err := p.r.store.Document(ctx, of.DocumentHash)
	if f, ok := apperror.From(err); ok && f.Class == apperror.NotFound {
		return lack{text: fmt.Sprintf("the document of %s@%s is not stored here", of.Workflow, of.Version)}, nil
	}
	return lack{}, err
}

// adopt inserts the row that an execution lacks.
func (p *pass) adopt(ctx context.Context, x run.Execution, o run.Origin) error {
	c := run.Correction{
		Kind: run.CorrectionAdopted, RunID: x.RunID, Project: o.Project,
		Detail: fmt.Sprintf("execution %s of %s@%s had no row", x.ExecutionID, o.Workflow, o.Version),
	}
	p.addLost(x)
	if p.dry {
		p.record(ctx, c)
		return nil
	}
	if err := p.noteRestore(ctx); err != nil {
		return err
	}
	insert := func() (run.Run, bool, error) {
		return p.r.store.InsertRun(ctx, o.Row(x),
			audit.NewEntry(ctx, p.r.opts.Now(), audit.RunAdopt, o.Project, x.RunID, c.Detail))
	}
	stored, made, err := insert()
	if err == nil && !made && stored.ID != x.RunID {
		// After the loss of its row the request was repeated, before it could be answered with this run.
		o.RequestID, o.RequestDigest = x.RunID, ""
		c.Detail += fmt.Sprintf("; its request ID is that of run %s, which repeats it", stored.ID)
		_, made, err = insert()
	}
	if err != nil || !made {
		return err
	}
	c.Applied = true
	p.record(ctx, c)
	return p.request(ctx, 0, run.Correction{RunID: x.RunID, Project: o.Project, Detail: c.Detail}, true)
}

// note adds a correction to the report alone.
func (p *pass) note(c run.Correction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report.Total++
	if p.report.Counts == nil {
		p.report.Counts = map[run.CorrectionKind]int{}
	}
	p.report.Counts[c.Kind]++
	if len(p.report.Corrections) < maxCorrections {
		p.report.Corrections = append(p.report.Corrections, c)
	}
}

// record adds a correction to the report. Unless the pass is a dry run, it also counts and logs it and notifies
// subscribers of the run.
func (p *pass) record(ctx context.Context, c run.Correction) {
	p.note(c)
	if !p.dry {
		p.announce(ctx, c)
	}
}

// announce counts and logs a finding, and notifies subscribers of the run.
func (p *pass) announce(ctx context.Context, c run.Correction) {
	p.r.opts.Metrics.Corrected(ctx, string(c.Kind))
	p.r.opts.Changes.Notify(c.RunID)
	level := slog.LevelInfo
	switch c.Kind { //nolint:exhaustive // the others are no more than information
	case run.CorrectionCaughtUp:
		level = slog.LevelDebug
	case run.CorrectionNotStarted, run.CorrectionExecutionMissing, run.CorrectionReopened, run.CorrectionForeign:
		level = slog.LevelWarn
	}
	logger.FromContext(ctx).Log(ctx, level, "Run differed from Temporal",
		"kind", c.Kind, "run_id", c.RunID, "project", c.Project, "applied", c.Applied, "detail", c.Detail)
}

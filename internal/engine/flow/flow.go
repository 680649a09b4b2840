package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/jellydator/ttlcache/v3"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

// loadTimeout bounds the loading of a document: the workflow's goroutine must not block for a second.
const loadTimeout = 700 * time.Millisecond

// Workflow is the one workflow of the platform. It is safe for concurrent use by all runs of a worker.
type Workflow struct {
	ctx    context.Context //nolint:containedctx // the worker's lifetime; a workflow's own context is not a context.Context
	docs   Documents
	sink   Sink
	turns  Turns
	limits Limits
	timers Timers
	// longest is the time for which a run may compute without a pause. 0: only fuel bounds it.
	longest time.Duration

	policies *ttlcache.Cache[string, *redact.Policy] // of documents, by hash
}

// New returns the workflow. ctx is the worker's lifetime: it bounds the loading of documents and nothing else.
func New(ctx context.Context, docs Documents, sink Sink, limits Limits) *Workflow {
	policies := ttlcache.New(ttlcache.WithCapacity[string, *redact.Policy](maxPolicies))
	return &Workflow{ctx: ctx, docs: docs, sink: sink, turns: unlimited{}, limits: limits, policies: policies}
}

// Share restricts the compute of runs to turns. It must be called before the workflow is registered.
func (w *Workflow) Share(turns Turns) *Workflow {
	w.turns = turns
	return w
}

// StopAfter fails the workflow task of a run with expressions that compute for longer than d without a pause, in
// addition to the bound by fuel. It must be called before the workflow is registered.
func (w *Workflow) StopAfter(d time.Duration) *Workflow {
	w.longest = d
	return w
}

// Timers measures timers of runs: a run has received its timer this late. The time is that of Temporal,
// from when the timer was due until the start of the workflow task that received it. A workflow task that is repeated
// measures its timers again, a replay does not.
type Timers func(ctx context.Context, late time.Duration)

// Measure passes the lateness of timers to timers, which must not block. nil: they are not measured. It must be called
// before the workflow is registered.
func (w *Workflow) Measure(timers Timers) *Workflow {
	w.timers = timers
	return w
}

// unlimited grants every turn.
type unlimited struct{}

func (unlimited) Enter(string, time.Time) Place { return unlimited{} }
func (unlimited) Wait(time.Duration) bool       { return true }
func (unlimited) Leave()                        {}

// Barrier implements BarrierActivity.
func Barrier(context.Context) error { return nil }

// Run interprets a run to its end, over any number of executions. Its result is the run's output. A failed run returns
// the error that Failed reads, a canceled one Temporal's CanceledError.
func (w *Workflow) Run(ctx workflow.Context, in Input) (json.RawMessage, error) {
	info := workflow.GetInfo(ctx)
	detached, _ := workflow.NewDisconnectedContext(ctx)
	machine := w.machine(detached, in)
	d := &driver{
		ctx: ctx, detached: detached, in: in, info: info, machine: machine, sink: w.sink, turns: w.turns,
		limits: w.limits.of(in), tracker: w.newTracker(in),
		execution: Execution{WorkflowID: info.WorkflowExecution.ID, RunID: info.WorkflowExecution.RunID},
		wakes:     workflow.GetSignalChannel(detached, contract.WakeSignal),
		controls:  workflow.GetSignalChannel(detached, contract.ControlSignal),
		children:  workflow.GetSignalChannel(detached, contract.ChildSignal),
	}
	if w.timers != nil {
		d.measure = func(late time.Duration) { w.timers(w.ctx, late) }
	}
	if w.longest > 0 {
		d.watch(w.longest)
	}
	if sink, ok := w.sink.(ListeningSink); ok {
		sink.Listening(d.listeners)
	}
	return d.run()
}

func (w *Workflow) document(hash string) (*dsl.Document, error) {
	loading, done := context.WithTimeout(w.ctx, loadTimeout)
	defer done()
	return w.docs.Document(loading, hash) //nolint:wrapcheck // the callers add the run
}

// machine creates or restores the machine. Errors here are not the run's fault: a panic fails the workflow task, and
// Temporal dispatches it again.
func (w *Workflow) machine(ctx workflow.Context, in Input) *interp.Machine {
	if in.Interpreter < 1 || in.Interpreter > interp.Version {
		panic(fmt.Sprintf("run %q needs interpreter %d, this worker has %d: it is for a newer worker", in.RunID,
			in.Interpreter, interp.Version))
	}
	doc, err := w.document(in.DocumentHash)
	if err != nil {
		panic(fmt.Sprintf("load document %q of run %q: %v", in.DocumentHash, in.RunID, err))
	}
	if in.Snapshot != nil {
		machine, err := runInBackground(ctx, func() (*interp.Machine, error) {
			return interp.Restore(doc, in.Snapshot, w.limits.of(in).Machine)
		})
		if err != nil {
			panic(fmt.Sprintf("continue run %q: %v", in.RunID, err))
		}
		return machine
	}
	now := workflow.Now(ctx)
	start := interp.Start{
		RunID: in.RunID, At: now, Source: "/projects/" + in.Project + "/workflows/" + in.Workflow + "/runs/" + in.RunID,
		RuntimeName: "signalbox", RuntimeVersion: strconv.Itoa(in.Interpreter),
		Metered: in.StepQuota, Interpreter: in.Interpreter,
	}
	if in.Granted != nil {
		start.Granted, start.Lapses = in.Granted.Steps, in.Granted.ResetAt
	}
	var malformed error
	if len(in.Input) > 0 {
		start.Input, malformed = jq.DecodeJSON(in.Input)
	}
	machine := interp.New(doc, start, w.limits.of(in).Machine)
	if malformed != nil {
		machine.Abort(dsl.Error{
			Type: dsl.ErrorTypeValidation, Status: 400, Title: "Validation failed", Instance: "/input",
			Detail: "the workflow's input cannot be read: " + malformed.Error(),
		}, now)
	}
	return machine
}

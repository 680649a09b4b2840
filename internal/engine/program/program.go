// Package program executes the programs of runs: it implements the activity [flow.ProgramActivity].
//
//	executor, err := program.New(ctx, program.Options{})
//	// register executor.Execute on the task queues of runners
//	err = executor.Stop(ctx)
//
// # Isolation
//
// JavaScript runs in a sandbox inside of this process, without files, network and processes (package javascript).
// Shell commands and scripts in Python are executed on this host (package process) or in containers, programs of the
// kind container in containers (package container). Programs for which there is no isolation are refused with the
// standard error configuration.
//
// # Failures
//
// A program that ends by itself is a result, whatever its exit code. One that cannot be executed, or that was ended, is
// a [flow.CallError]:
//
//	what happened                          type           status
//	it exceeded its time                   timeout        408
//	it printed more than the limit         runtime        500
//	it exceeded its memory                 runtime        500
//	this runner does not execute it        configuration  400
//
// A program that ended because this process stops, or because its activity was canceled, is [flow.Interrupted].
package program

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/heartbeat"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/sandbox/javascript"
	"github.com/signalbox-dev/signalbox/internal/sandbox/limit"
	"github.com/signalbox-dev/signalbox/internal/sandbox/output"
	"github.com/signalbox-dev/signalbox/internal/sandbox/process"
)

// Metrics measures programs.
type Metrics interface {
	// Ended is called after each program, with one of Outcomes.
	Ended(ctx context.Context, kind, outcome string, took time.Duration)
}

// Outcomes of programs.
const (
	Completed   = "completed"   // with the exit code 0
	Failed      = "failed"      // with another exit code
	Stopped     = "stopped"     // at one of its limits
	Refused     = "refused"     // not executed
	Interrupted = "interrupted" // it was canceled, or this process stopped
)

// Outcomes returns all outcomes.
func Outcomes() []string { return []string{Completed, Failed, Stopped, Refused, Interrupted} }

// Options configure an executor.
type Options struct {
	// Programs is how many programs run at once.
	Programs int
	// ScriptTime bounds a script of JavaScript, which occupies a processor all the time.
	ScriptTime time.Duration
	// Memory bounds the heap of a script of JavaScript, in bytes.
	Memory int64
	// Output bounds each of the two output streams of a program, in bytes.
	Output int
	// Commands isolates shell commands and scripts in Python. nil: they are refused, for the reason in Unisolated.
	Commands   *process.Sandbox
	Unisolated string
	// Containers isolate programs of the kind container, and others for which they have an image. nil: there are none.
	Containers *Containers
	// Metrics measures programs. nil: they are not measured.
	Metrics Metrics
}

// Executor executes programs. It is safe for concurrent use.
type Executor struct {
	opts    Options
	scripts *scripts
	// commands is nil where this host cannot isolate them. unisolated is the reason.
	commands   sandbox
	unisolated string
	slots      chan struct{}

	life     context.Context //nolint:containedctx // the lifetime of the programs that no activity awaits
	end      context.CancelFunc
	detached sync.WaitGroup
}

// New returns an executor.
func New(ctx context.Context, o Options) (*Executor, error) {
	engine, err := javascript.New(ctx, javascript.Options{Memory: o.Memory})
	if err != nil {
		return nil, err
	}
	e := &Executor{
		opts: o, scripts: &scripts{engine, o.ScriptTime}, unisolated: o.Unisolated, slots: make(chan struct{}, o.Programs),
	}
	if o.Commands != nil {
		e.commands = &commands{o.Commands}
	}
	e.life, e.end = context.WithCancel(context.WithoutCancel(ctx))
	if o.Containers != nil {
		e.detached.Go(e.sweep)
	}
	return e, nil
}

// Stop ends the programs that run, and waits for those that no activity awaits.
func (e *Executor) Stop(ctx context.Context) error {
	e.end()
	e.detached.Wait()
	return e.scripts.engine.Close(ctx)
}

// Isolations returns how the executor isolates each kind of program. Those that it refuses are absent.
func (e *Executor) Isolations() contract.Isolations {
	list := contract.Isolations{string(dsl.JavaScript): "webassembly"}
	if e.opts.Containers != nil {
		list[string(dsl.ProgramContainer)] = inContainer
	}
	for _, u := range []dsl.UsedProgram{
		{Program: dsl.ProgramShell}, {Program: dsl.ProgramScript, Language: dsl.Python},
	} {
		switch {
		case e.opts.Containers.image(flow.ProgramRequest{Kind: string(u.Program), Language: string(u.Language)}) != "":
			list[u.Key()] = inContainer
		case e.opts.Commands != nil && (u.Language != dsl.Python || e.opts.Commands.Has(pythonProgram)):
			list[u.Key()] = e.opts.Commands.Isolation()
		}
	}
	return list
}

// inContainer is the isolation of programs in containers.
const inContainer = "container"

// Execute is the activity. The package documentation describes its errors.
func (e *Executor) Execute(ctx context.Context, r flow.ProgramRequest) (flow.ProgramResult, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.Limits = limit.Limits{Output: int64(e.opts.Output)}.Within(r.Limits)
	if r.Limits.Time > 0 {
		r.Timeout = min(r.Timeout, r.Limits.Time)
	}
	printed := output.New(int(r.Limits.Output), cancel)
	defer heartbeat.KeepReporting(ctx, live(r, printed))()
	if err := e.acquire(ctx); err != nil {
		return flow.ProgramResult{}, err
	}
	if !r.Detached {
		defer e.release()
		result, err := e.execute(ctx, r, printed)
		if stdout, stderr := printed.Text(); err != nil && stdout+stderr != "" {
			err = flow.WithLog(err, r.Log(stdout, stderr, flow.KeptLog))
		}
		return result, err
	}
	if _, err := e.sandboxOf(r); err != nil {
		e.release()
		return flow.ProgramResult{}, err
	}
	e.detached.Go(func() {
		defer e.release()
		life, cancel := context.WithCancelCause(logger.WithContext(e.life, logger.FromContext(ctx)))
		defer cancel(nil)
		if _, err := e.execute(life, r, output.New(int(r.Limits.Output), cancel)); err != nil {
			logger.FromContext(ctx).WarnContext(e.life, "A program that its run does not await was ended", "error", err)
		}
	})
	return flow.ProgramResult{}, nil
}

// acquire waits until a program may run.
func (e *Executor) acquire(ctx context.Context) error {
	select {
	case e.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
	case <-e.life.Done():
	}
	return flow.Interrupted("the program was not started: its activity was canceled, or the runner stops")
}

func (e *Executor) release() { <-e.slots }

// execute executes a program, which prints to printed, and measures it.
func (e *Executor) execute(ctx context.Context, r flow.ProgramRequest, printed *output.Streams) (flow.ProgramResult,
	error) {
	began := time.Now()
	outcome := Refused
	defer func() {
		if e.opts.Metrics != nil {
			e.opts.Metrics.Ended(context.WithoutCancel(ctx), r.Kind, outcome, time.Since(began))
		}
	}()
	box, err := e.sandboxOf(r)
	if err != nil {
		return flow.ProgramResult{}, err
	}
	bounded, cancel := context.WithTimeoutCause(ctx, r.Timeout, &tooSlow{r.Timeout})
	defer cancel()
	code, err := box.run(bounded, r, printed)
	switch canceled := ctx.Err() != nil && !errors.Is(context.Cause(ctx), output.ErrFull); {
	case err == nil && code == 0:
		outcome = Completed
	case err == nil:
		outcome = Failed
	case canceled || e.life.Err() != nil:
		outcome = Interrupted
		return flow.ProgramResult{}, flow.Interrupted(fmt.Sprintf("the program was ended: %v", err))
	default:
		outcome = Stopped
		return flow.ProgramResult{}, ended(r, err, r.Limits.Output)
	}
	stdout, stderr := printed.Text()
	return flow.ProgramResult{Code: code, Stdout: stdout, Stderr: stderr}, nil
}

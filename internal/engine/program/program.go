// Package program executes the programs of runs: it implements the activity [flow.ProgramActivity].
//
//	executor, err := program.New(ctx, program.Options{})
//	// register executor.Execute on the task queues of runners
//	err = executor.Stop(ctx)
//
// # Isolation
//
// JavaScript runs in a sandbox inside of this process, without files, network and processes (package javascript).
// Programs of other kinds are refused with the standard error configuration: this process has no isolation for them.
//
// # Failures
//
// A program that ends by itself is a result, whatever its exit code. One that cannot be executed, or that was ended, is
// a [flow.CallError]:
//
//	what happened                          type           status
//	it exceeded its time                   timeout        408
//	it printed more than the limit         runtime        500
//	this runner does not execute its kind  configuration  400
//
// A program that ended because this process stops, or because its activity was canceled, is [flow.Interrupted].
package program

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/heartbeat"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/sandbox/javascript"
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
	// Metrics measures programs. nil: they are not measured.
	Metrics Metrics
}

// Executor executes programs. It is safe for concurrent use.
type Executor struct {
	opts    Options
	scripts *javascript.Engine
	slots   chan struct{}

	life     context.Context //nolint:containedctx // the lifetime of the programs that no activity awaits
	end      context.CancelFunc
	detached sync.WaitGroup
}

// New returns an executor.
func New(ctx context.Context, o Options) (*Executor, error) {
	scripts, err := javascript.New(ctx, javascript.Options{Memory: o.Memory})
	if err != nil {
		return nil, err
	}
	e := &Executor{opts: o, scripts: scripts, slots: make(chan struct{}, o.Programs)}
	e.life, e.end = context.WithCancel(context.WithoutCancel(ctx))
	return e, nil
}

// Stop ends the programs that run, and waits for those that no activity awaits.
func (e *Executor) Stop(ctx context.Context) error {
	e.end()
	e.detached.Wait()
	return e.scripts.Close(ctx)
}

// Execute is the activity. The package documentation describes its errors.
func (e *Executor) Execute(ctx context.Context, r flow.ProgramRequest) (flow.ProgramResult, error) {
	defer heartbeat.Keep(ctx)()
	if err := e.acquire(ctx); err != nil {
		return flow.ProgramResult{}, err
	}
	if !r.Detached {
		defer e.release()
		return e.execute(ctx, r)
	}
	if err := unsupported(r); err != nil {
		e.release()
		return flow.ProgramResult{}, err
	}
	e.detached.Go(func() {
		defer e.release()
		if _, err := e.execute(logger.WithContext(e.life, logger.FromContext(ctx)), r); err != nil {
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

// execute executes a program and measures it.
func (e *Executor) execute(ctx context.Context, r flow.ProgramRequest) (result flow.ProgramResult, err error) {
	began := time.Now()
	outcome := Refused
	defer func() {
		if e.opts.Metrics != nil {
			e.opts.Metrics.Ended(context.WithoutCancel(ctx), r.Kind, outcome, time.Since(began))
		}
	}()
	if err := unsupported(r); err != nil {
		return flow.ProgramResult{}, err
	}
	result, err = e.script(ctx, r)
	switch {
	case err == nil && result.Code == 0:
		outcome = Completed
	case err == nil:
		outcome = Failed
	case errors.Is(ctx.Err(), context.Canceled), e.life.Err() != nil:
		outcome = Interrupted
		return flow.ProgramResult{}, flow.Interrupted(fmt.Sprintf("the program was ended: %v", err))
	default:
		outcome = Stopped
	}
	return result, err
}

// script executes a script of JavaScript.
func (e *Executor) script(ctx context.Context, r flow.ProgramRequest) (flow.ProgramResult, error) {
	limit := min(r.Timeout, e.opts.ScriptTime)
	result, err := e.scripts.Run(ctx, javascript.Program{
		Code: r.Code, Arguments: r.Arguments, Globals: r.Named, Environment: r.Environment, Stdin: r.Stdin,
		Limits: javascript.Limits{Time: limit, Output: e.opts.Output},
	})
	switch {
	case err == nil:
		return flow.ProgramResult{Code: result.Code, Stdout: result.Stdout, Stderr: result.Stderr}, nil
	case errors.Is(err, javascript.ErrTime):
		return flow.ProgramResult{}, ended(err, dsl.Error{
			Type: dsl.ErrorTypeTimeout, Status: http.StatusRequestTimeout, Title: "Program too slow",
			Detail: fmt.Sprintf("the script did not end within %s", limit),
		})
	case errors.Is(err, javascript.ErrOutput):
		return flow.ProgramResult{}, ended(err, dsl.Error{
			Type: dsl.ErrorTypeRuntime, Status: http.StatusInternalServerError, Title: "Output too large",
			Detail: fmt.Sprintf("the script printed more than %d bytes", e.opts.Output),
		})
	}
	return flow.ProgramResult{}, ended(err, dsl.Error{
		Type: dsl.ErrorTypeRuntime, Status: http.StatusInternalServerError, Title: "Program ended",
		Detail: "the sandbox ended the script: " + err.Error(),
	})
}

// unsupported returns the error of a program that this runner does not execute; nil for another.
func unsupported(r flow.ProgramRequest) error {
	if r.Kind == string(dsl.ProgramScript) && r.Language == string(dsl.JavaScript) {
		return nil
	}
	what := r.Kind
	if r.Language != "" {
		what = r.Language + " " + what
	}
	return ended(nil, dsl.Error{
		Type: dsl.ErrorTypeConfiguration, Status: http.StatusBadRequest, Title: "Program not supported",
		Detail: fmt.Sprintf("the runner does not execute a %s: it has no isolation for it, and executes JavaScript alone",
			what),
	})
}

// ended returns the error of a program that did not end by itself.
func ended(cause error, runError dsl.Error) error {
	return flow.CallError(flow.CategoryAnswered, runError, cause)
}

package program

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/sandbox/container"
	"github.com/signalbox-dev/signalbox/internal/sandbox/javascript"
	"github.com/signalbox-dev/signalbox/internal/sandbox/output"
	"github.com/signalbox-dev/signalbox/internal/sandbox/process"
)

// sandbox isolates programs.
type sandbox interface {
	// run executes a program until it ends by itself, and returns its exit code. Its error is the cause of ctx, a
	// [*tooSlow], or describes why the program was not executed or was ended.
	run(ctx context.Context, r flow.ProgramRequest, printed *output.Streams) (code int, err error)
}

// tooSlow is the error of a program that exceeded its time.
type tooSlow struct{ limit time.Duration }

// Error implements error.
func (e *tooSlow) Error() string { return fmt.Sprintf("it did not end within %s", e.limit) }

// scripts execute scripts of JavaScript. They implement [sandbox].
type scripts struct {
	engine *javascript.Engine
	limit  time.Duration
}

func (s *scripts) run(ctx context.Context, r flow.ProgramRequest, printed *output.Streams) (int, error) {
	limit := min(r.Timeout, s.limit)
	code, err := s.engine.Run(ctx, javascript.Program{
		Code: r.Code, Arguments: r.Arguments, Globals: r.Named, Environment: r.Environment, Stdin: r.Stdin,
		Output: printed, Time: limit, Memory: r.Limits.Memory,
	})
	if errors.Is(err, javascript.ErrTime) {
		return 0, &tooSlow{limit}
	}
	return code, err
}

// sandboxOf returns the sandbox for a program, or the error of one that this runner does not execute.
func (e *Executor) sandboxOf(r flow.ProgramRequest) (sandbox, error) {
	if r.Kind == string(dsl.ProgramScript) && r.Language == string(dsl.JavaScript) {
		return e.scripts, nil
	}
	containers := e.opts.Containers
	if r.Kind == string(dsl.ProgramContainer) && containers == nil {
		return nil, ended(r, &refusal{"runner.containers.socket names no engine of containers"}, 0)
	}
	if r.Kind == string(dsl.ProgramContainer) || containers.image(r) != "" {
		return containers, nil
	}
	if e.commands == nil {
		return nil, ended(r, &refusal{"it has no isolation for it: " + e.unisolated}, 0)
	}
	return e.commands, nil
}

// noun returns what a program is, for example "shell command" or "python script".
func noun(r flow.ProgramRequest) string {
	if r.Kind == string(dsl.ProgramShell) {
		return "shell command"
	}
	if r.Language != "" && r.Language != string(dsl.JavaScript) {
		return r.Language + " " + r.Kind
	}
	return r.Kind
}

// ended returns the error of a program that did not end by itself. limit bounds each of its output streams.
func ended(r flow.ProgramRequest, cause error, limit int64) error {
	runError := dsl.Error{Type: dsl.ErrorTypeRuntime, Status: http.StatusInternalServerError, Title: "Program ended",
		Detail: fmt.Sprintf("the sandbox ended the %s: %v", noun(r), cause)}
	if slow, is := errors.AsType[*tooSlow](cause); is {
		runError = dsl.Error{Type: dsl.ErrorTypeTimeout, Status: http.StatusRequestTimeout, Title: "Program too slow",
			Detail: fmt.Sprintf("the %s did not end within %s", noun(r), slow.limit)}
	}
	if refused, is := errors.AsType[*refusal](cause); is {
		runError = dsl.Error{Type: dsl.ErrorTypeConfiguration, Status: http.StatusBadRequest, Title: "Program refused",
			Detail: fmt.Sprintf("the runner does not execute the %s: %s", noun(r), refused.reason)}
	}
	if errors.Is(cause, process.ErrMemory) || errors.Is(cause, container.ErrMemory) {
		runError.Title = "Memory exceeded"
		runError.Detail = fmt.Sprintf("the %s was ended, because it exceeded its memory", noun(r))
	}
	if errors.Is(cause, output.ErrFull) {
		runError.Title = "Output too large"
		runError.Detail = fmt.Sprintf("the %s printed more than %d bytes", noun(r), limit)
	}
	return flow.CallError(flow.CategoryAnswered, runError, cause)
}

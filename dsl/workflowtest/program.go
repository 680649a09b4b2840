package workflowtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/sandbox/javascript"
	"github.com/signalbox-dev/signalbox/internal/sandbox/output"
)

// The limits of a script: less time than a runner gives it without configuration, because it may be one of many cases,
// and the same memory and output.
const (
	scriptTime   = 10 * time.Second
	scriptMemory = 64 << 20
	scriptOutput = 256 << 10
)

// program answers the start of a program: with the output of a mock, which is its standard output or an object of code,
// stdout and stderr, and otherwise by executing a script in JavaScript, which takes no time of the run.
func (r *runner) program(ctx context.Context, e interp.RunProgram) {
	task := r.machine.TaskOf(e.ID)
	if task == nil {
		return // it was canceled in the same turn
	}
	request := map[string]any{"task": task.Name, "kind": string(e.Program.Kind), "code": e.Program.Code,
		"stdin": e.Program.Stdin}
	response := r.answer(task, request, func(m *Response) bool { return m.HasOutput || m.Fail != nil })
	switch {
	case r.stopped:
	case response != nil && response.Fail != nil:
		failure := response.Fail.error(task.Pointer)
		r.finishCall(e.ID, response.Delay, interp.Result{Error: &failure})
	case response != nil:
		result, err := mockedProgram(response.Output)
		if err != nil {
			r.stop(Mismatch{What: "mock", Pos: response.at.pos, Message: fmt.Sprintf("the output of the program that the task "+
				"%q runs %v", task.Name, err)})
			return
		}
		r.finishCall(e.ID, response.Delay, interp.Result{Value: result})
	case e.Program.Language == dsl.JavaScript:
		result, err := r.scripts.run(ctx, e.Program)
		if err != nil {
			r.stop(Mismatch{What: "run", Message: fmt.Sprintf("the script of the task %q: %v", task.Name, err)})
			return
		}
		r.finishCall(e.ID, 0, interp.Result{Value: result})
	default:
		r.stop(Mismatch{What: "run", Message: fmt.Sprintf("no mock answers the %s that the task %q runs: only scripts in "+
			"JavaScript are executed here\nadd to the mocks of the case:\n  - task: %s\n    respond: {output: ''}",
			e.Program.Kind, task.Name, task.Name)})
	}
}

// mockedProgram returns the result of a program from the output of a mock.
func mockedProgram(output any) (interp.ProgramResult, error) {
	if text, ok := output.(string); ok {
		return interp.ProgramResult{Stdout: text}, nil
	}
	var result interp.ProgramResult
	members, ok := output.(map[string]any)
	for name, value := range members {
		switch text, isText := value.(string); {
		case name == "stdout" && isText:
			result.Stdout = text
		case name == "stderr" && isText:
			result.Stderr = text
		case name == "code":
			encoded, err := jq.EncodeJSON(value)
			ok = ok && err == nil && json.Unmarshal(encoded, &result.Code) == nil
		default:
			ok = false
		}
	}
	if !ok {
		return result, errors.New("is neither a text, its standard output, nor an object of code, stdout and stderr")
	}
	return result, nil
}

// scripts execute the scripts of runs in one sandbox, which the first of them prepares: that takes up to a second. They
// are safe for concurrent use.
type scripts struct {
	prepare sync.Once
	engine  *javascript.Engine
	err     error
}

func (s *scripts) run(ctx context.Context, p *interp.Program) (interp.ProgramResult, error) {
	s.prepare.Do(func() { s.engine, s.err = javascript.New(ctx, javascript.Options{Memory: scriptMemory}) })
	if s.err != nil {
		return interp.ProgramResult{}, s.err
	}
	globals := map[string]json.RawMessage{}
	for name, value := range p.Named {
		encoded, err := jq.EncodeJSON(value)
		if err != nil {
			return interp.ProgramResult{}, err
		}
		globals[name] = encoded
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	printed := output.New(scriptOutput, cancel)
	code, err := s.engine.Run(ctx, javascript.Program{
		Code: p.Code, Arguments: p.Arguments, Globals: globals, Environment: p.Environment, Stdin: p.Stdin,
		Output: printed, Time: scriptTime,
	})
	stdout, stderr := printed.Text()
	return interp.ProgramResult{Code: code, Stdout: stdout, Stderr: stderr}, err
}

// close releases the sandbox, if there is one.
func (s *scripts) close(ctx context.Context) {
	if s.engine != nil {
		_ = s.engine.Close(ctx) // it holds memory alone
	}
}

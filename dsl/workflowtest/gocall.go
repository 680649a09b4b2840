package workflowtest

import (
	"fmt"

	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// callGo answers the call of a Go function with a mock: the program that has the function is not here.
func (r *runner) callGo(e interp.CallGo) {
	task := r.machine.TaskOf(e.ID)
	if task == nil {
		return // it was canceled in the same turn
	}
	request := map[string]any{"task": task.Name, "program": e.Program, "function": e.Function, "version": e.Version,
		"input": e.Input}
	response := r.answer(task, request, func(m *Response) bool { return m.HasOutput || m.Fail != nil })
	switch {
	case r.stopped:
	case response == nil:
		message := fmt.Sprintf("no mock answers the Go function %s:%s that the task %q calls", e.Function, e.Version,
			task.Name)
		if input, err := jq.EncodeJSON(e.Input); err == nil {
			message += "\n  with the input " + shortened(string(input))
		}
		r.stop(Mismatch{What: "run", Message: fmt.Sprintf("%s\nadd to the mocks of the case:\n  - task: %s\n    "+
			"respond: {output: {}}", message, task.Name)})
	case response.Fail != nil:
		failure := response.Fail.error(task.Pointer)
		r.finishCall(e.ID, response.Delay, interp.Result{Error: &failure})
	default:
		r.finishCall(e.ID, response.Delay, interp.Result{Value: response.Output})
	}
}

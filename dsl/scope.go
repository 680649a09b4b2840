package dsl

import "slices"

// slot is a position in a document at which expressions are allowed. It defines the variables they may use, by the
// table of the specification.
type slot int

const (
	slotWorkflowInput slot = iota
	slotWorkflowOutput
	slotTaskInput
	slotTask // if, the task's own definition, catch and retry
	slotTaskOutput
	slotTaskExport
)

// runtimeVariables returns the variables of a slot. $secrets is not among them: it has no value (see Secret).
func (s slot) runtimeVariables() []string {
	switch s {
	case slotWorkflowInput:
		return []string{"workflow", "runtime"}
	case slotWorkflowOutput:
		return []string{"context", "workflow", "runtime"}
	case slotTaskInput:
		return []string{"context", "task", "workflow", "runtime"}
	case slotTask, slotTaskOutput:
		return []string{"context", "input", "task", "workflow", "runtime", "authorization"}
	}
	return []string{"context", "input", "output", "task", "workflow", "runtime", "authorization"}
}

// Variables returns the variables of the runtime, without "$", that expressions below a key of a task may use, or of the
// document if inTask is false. Loops and catches around the task define more. A call may name $secrets, too.
func Variables(inTask bool, key string) []string {
	switch {
	case inTask && key == "input":
		return slotTaskInput.runtimeVariables()
	case inTask && key == "output":
		return slotTaskOutput.runtimeVariables()
	case inTask && key == "export":
		return slotTaskExport.runtimeVariables()
	case inTask, key == "use":
		return slotTask.runtimeVariables()
	case key == "output":
		return slotWorkflowOutput.runtimeVariables()
	case key == "input", key == "timeout":
		return slotWorkflowInput.runtimeVariables()
	}
	return nil
}

// reservedNames lists the names that the variables of a loop or a catch must not have, because they would hide
// variables of the runtime.
func reservedNames() []string {
	return []string{"context", "input", "output", "secrets", "authorization", "task", "workflow", "runtime"}
}

// scope is the set of variables that the loops and catches around a task define.
type scope struct{ names []string }

// with returns the scope inside a construct that defines variables.
func (s scope) with(names ...string) scope {
	return scope{append(slices.Clone(s.names), names...)}
}

// at returns all variables of a slot in the scope.
func (s scope) at(slot slot) []string {
	return append(slot.runtimeVariables(), s.names...)
}

package dsl

import "slices"

// slot is a place for expressions, which decides the variables they may use. The table is the specification's.
type slot int

const (
	slotWorkflowInput slot = iota
	slotWorkflowOutput
	slotTaskInput
	slotTask // if, the task's own definition, catch and retry
	slotTaskOutput
	slotTaskExport
)

// runtimeVariables gives the variables of a slot. $secrets is left out: it is no variable with a value (see Secret).
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

// reservedNames may not name the variables of a loop or a catch, as they would hide what the runtime provides.
func reservedNames() []string {
	return []string{"context", "input", "output", "secrets", "authorization", "task", "workflow", "runtime"}
}

// scope is what a task can see: the variables of the loops and catches around it.
type scope struct{ names []string }

// with is the scope inside a construct that defines variables.
func (s scope) with(names ...string) scope {
	return scope{append(slices.Clone(s.names), names...)}
}

// at gives all variables of a slot in the scope.
func (s scope) at(place slot) []string {
	return append(place.runtimeVariables(), s.names...)
}

package interp

import "github.com/signalbox-dev/signalbox/dsl"

// callFunction begins the function of a call, with the call's arguments as its input. Its output is that of the call.
func (m *Machine) callFunction(f *frame, b *dsl.FunctionCall) {
	input, runError := m.template(b.With, f.input, m.variables(f), f.task.Pointer)
	if runError != nil {
		m.fail(f, runError)
		return
	}
	m.newList(f, roleFunction, b.Tasks(), input)
}

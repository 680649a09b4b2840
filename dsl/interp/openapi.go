package interp

import (
	"errors"
	"maps"
	"slices"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp/internal/payload"
)

// openAPIRequest evaluates the arguments of a call, compares them with the description of its operation and makes the
// request of them. All of it is in the document, so that a replay makes the same request.
func (m *Machine) openAPIRequest(f *frame, b *dsl.OpenAPICall) (*HTTPRequest, *dsl.Error) {
	vars, at := m.variables(f), f.task.Pointer
	arguments := make(map[string]any, len(b.Arguments))
	for _, name := range slices.Sorted(maps.Keys(b.Arguments)) {
		v, runError := m.template(b.Arguments[name], f.input, vars, at)
		if runError != nil {
			return nil, runError
		}
		arguments[name] = v
	}
	authentication, runError := m.authentication(f, b.Authentication, f.input, vars)
	if runError != nil {
		return nil, runError
	}
	copied := int64(payload.Size(arguments, m.limits.size()) / bytesPerFuel)
	made, used, err := b.Request(arguments, m.fuel().Remaining()-copied)
	m.spend(min(copied+used, m.fuel().Remaining()))
	if err != nil {
		return nil, argumentsError(err, at)
	}
	r := &HTTPRequest{Method: made.Method, Body: made.Body, HasBody: made.HasBody, Output: b.Output, Redirect: b.Redirect,
		Authentication: authentication}
	setPlaceholders(r, made.URL, made.Headers, made.Query, len(m.doc.Use.Secrets) > 0)
	return r, nil
}

// argumentsError returns the error of a call that cannot be made with its arguments.
func argumentsError(err error, at string) *dsl.Error {
	kind := dsl.ErrorTypeExpression // the check may take more than its budget
	if _, ok := errors.AsType[*dsl.ArgumentsError](err); ok {
		kind = dsl.ErrorTypeValidation
	}
	runError := newError(kind, 400, at, err.Error())
	return &runError
}

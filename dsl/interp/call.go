package interp

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp/internal/opaque"
	"github.com/signalbox-dev/signalbox/dsl/interp/internal/payload"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// startCall begins the external work of a task. While the machine holds, it begins after Restore.
func (m *Machine) startCall(f *frame) {
	if m.hold {
		m.held = append(m.held, f)
		return
	}
	f.phase = phaseBlocked
	switch b := f.task.Body.(type) {
	case *dsl.Listen:
		m.startListen(f, b)
	case *dsl.Emit:
		m.startEmit(f, b)
	case *dsl.RunWorkflow:
		m.startChild(f, b)
	case *dsl.HTTPCall:
		request, runError := m.httpRequest(f, b)
		m.startHTTP(f, request, runError)
	case *dsl.OpenAPICall:
		request, runError := m.openAPIRequest(f, b)
		m.startHTTP(f, request, runError)
	case *dsl.GoCall:
		m.startGoCall(f, b)
	case *dsl.RunProgram:
		m.startProgram(f, b)
	}
}

// startHTTP emits the effect of a call with a request, or fails it if there is none.
func (m *Machine) startHTTP(f *frame, request *HTTPRequest, runError *dsl.Error) {
	if runError != nil {
		m.fail(f, runError)
		return
	}
	m.sendRequest(f, request)
}

// sendRequest emits the effect of a request.
func (m *Machine) sendRequest(f *frame, request *HTTPRequest) {
	f.call = EffectID(m.newID())
	m.calls[f.call] = f
	f.step.method, f.step.host = request.Method, hostOf(request)
	f.step.beginAttempt(1, m.now)
	f.step.requests = true
	m.recorder.markDirty(f.step)
	m.effects = append(m.effects, Call{
		ID: f.call, StepNumber: f.step.number, Attempt: f.step.attempt, Deadline: f.deadline(),
		Key: callKey(m.start.RunID, f.key), HTTP: request,
		Once: f.source == nil && f.task.ForbidsRepeat(),
	})
}

// hostOf returns the host and port of a request's URL; empty where it has none, and where a secret is part of it.
func hostOf(r *HTTPRequest) string {
	u, err := url.Parse(r.URL)
	if err != nil {
		return ""
	}
	for placeholder := range r.Secrets {
		if strings.Contains(u.Host, placeholder) {
			return ""
		}
	}
	return u.Host
}

// TaskOf returns the task that an effect belongs to; nil where the effect has ended or belongs to none.
func (m *Machine) TaskOf(id EffectID) *dsl.Task {
	if f, open := m.calls[id]; open {
		return f.task
	}
	return nil
}

// RecordAttempts records the requests of a call in flight, with results that are known or lost, before the call is sent
// again.
func (m *Machine) RecordAttempts(id EffectID, attempts []Attempt, now time.Time) {
	m.tick(now)
	f, open := m.calls[id]
	if !open || m.outcome != nil || f.check != nil { // the attempts of a step are those of its work
		return
	}
	f.step.setAttempts(attempts, nil)
	f.step.beginAttempt(len(attempts)+1, m.now)
	m.recorder.markDirty(f.step)
}

// endAttempts completes the attempts of a frame's step with the result of its call.
func (m *Machine) endAttempts(f *frame, attempts []Attempt, runError *dsl.Error) {
	if len(attempts) > 0 {
		f.step.setAttempts(attempts, runError)
		return
	}
	if f.step.requests && runError != nil {
		f.step.setOutcome(OutcomeFailed)
	}
	f.step.endAttempt(m.now, runError)
}

// retryAfter returns the delay that the response to the last attempt asks for.
func retryAfter(attempts []Attempt) time.Duration {
	if n := len(attempts); n > 0 {
		return attempts[n-1].RetryAfter
	}
	return 0
}

// EntryKey identifies one entry into a task across all runs, by the step's path. It names the listener of a listen task
// and the run that a run task awaits.
func EntryKey(runID, path string) string { return callKey(runID, path) }

// callKey identifies a call by its run and its path in the run.
func callKey(runID, place string) string {
	sum := sha256.Sum256([]byte(place))
	return runID + "-" + hex.EncodeToString(sum[:8])
}

func (m *Machine) httpRequest(f *frame, b *dsl.HTTPCall) (*HTTPRequest, *dsl.Error) {
	vars, at := m.variables(f), f.task.Pointer
	r := &HTTPRequest{Output: b.Output, Redirect: b.Redirect}
	var runError *dsl.Error
	if r.Method, runError = m.text(b.Method, f.input, vars, at); runError != nil {
		return nil, runError
	}
	r.Method = strings.ToUpper(r.Method)
	fuel := m.fuel()
	uri, err := b.URI(f.input, vars, fuel)
	m.spend(fuel.Used())
	if runError = expressionError(err, at); runError != nil {
		return nil, runError
	}
	headers, runError := m.strings(f, b.Headers, vars, "with.headers")
	if runError != nil {
		return nil, runError
	}
	query, runError := m.strings(f, b.Query, vars, "with.query")
	if runError != nil {
		return nil, runError
	}
	if b.Body != nil {
		r.HasBody = true
		if r.Body, runError = m.template(b.Body, f.input, vars, at); runError != nil {
			return nil, runError
		}
	}
	if r.Authentication, runError = m.authentication(f, b.Authentication, f.input, vars); runError != nil {
		return nil, runError
	}
	setPlaceholders(r, uri, headers, query, len(m.doc.Use.Secrets) > 0)
	return r, nil
}

// authentication evaluates how a call authenticates; nil if it does not.
func (m *Machine) authentication(f *frame, a *dsl.Authentication, input any, vars map[string]any) (*Authentication,
	*dsl.Error) {
	if a == nil {
		return nil, nil
	}
	out := &Authentication{Scheme: a.Scheme, Secret: a.Secret}
	if a.Properties == nil {
		return out, nil
	}
	var runError *dsl.Error
	out.Properties, runError = m.template(a.Properties, input, vars, f.task.Pointer)
	return out, runError
}

// setPlaceholders completes a request: it replaces secrets by placeholders. secrets reports whether there may be any.
func setPlaceholders(r *HTTPRequest, uri any, headers, query map[string]any, secrets bool) {
	placeholders := opaque.New()
	if secrets {
		placeholders.Reserve(r.Method, uri, headers, query, r.Body)
		if r.Authentication != nil {
			placeholders.Reserve(r.Authentication.Properties)
		}
	}
	r.URL = placeholders.Text(uri)
	r.Headers, r.Query = placeholders.Texts(headers), placeholders.Texts(query)
	r.Body = placeholders.Value(r.Body)
	if r.Authentication != nil {
		r.Authentication.Properties = placeholders.Value(r.Authentication.Properties)
	}
	r.Secrets = placeholders.Secrets
}

// strings evaluates a template that must result in an object of strings, which may contain secrets. Numbers and
// booleans become text, null members are omitted.
func (m *Machine) strings(f *frame, t *dsl.Template, vars map[string]any, what string) (map[string]any, *dsl.Error) {
	if t == nil {
		return nil, nil
	}
	v, runError := m.template(t, f.input, vars, f.task.Pointer)
	if runError != nil || v == nil {
		return nil, runError
	}
	object, ok := v.(map[string]any)
	if !ok {
		runError := newError(dsl.ErrorTypeExpression, 400, f.task.Pointer,
			what+" must give an object of strings, got "+jq.TypeName(v))
		return nil, &runError
	}
	out := make(map[string]any, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		switch value := object[name].(type) {
		case nil:
		case string, dsl.Opaque:
			out[name] = value
		case []any, map[string]any:
			runError := newError(dsl.ErrorTypeExpression, 400, f.task.Pointer,
				what+"."+name+" must be a string, got "+jq.TypeName(value))
			return nil, &runError
		default:
			out[name] = string(payload.Encode(value))
		}
	}
	return out, nil
}

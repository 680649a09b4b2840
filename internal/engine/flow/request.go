package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/httpmessage"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/engine/contract"
)

// deadlineGrace is the time by which a call may exceed its task's deadline. The task's own timer must fire first, so
// that the failure is the timeout that the document requested. The end of the task cancels the call.
const deadlineGrace = 2 * time.Second

const (
	// keepGrace is the time by which the activity of a call may exceed its request: it waits with a response until the
	// database can store it. Heartbeats detect the loss of its worker.
	keepGrace = 10 * time.Minute
	// localGrace is the time by which a local activity may exceed its patience. Only a process without processor time
	// needs it.
	localGrace = 5 * time.Second
	// localQueue is the time for which a call waits for a free slot of its worker to run as a local activity before it
	// becomes an activity.
	localQueue = 10 * time.Second
	// minInline is the smallest room for a result, in bytes, with which a call is made as a local activity.
	minInline = 4 << 10
)

// request returns the wire form of a call.
func (d *driver) request(c interp.Call) HTTPRequest {
	r := HTTPRequest{
		Method: c.HTTP.Method, URL: c.HTTP.URL, Headers: c.HTTP.Headers, Query: c.HTTP.Query,
		Output: string(c.HTTP.Output), Redirect: c.HTTP.Redirect,
		Timeout: d.limits.CallTimeout, MaxResponseBytes: d.limits.CallResult,
		Once: c.Once,
	}
	if r.Output == "" {
		r.Output = OutputContent
	}
	if !c.Deadline.IsZero() {
		r.Timeout = max(c.Deadline.Sub(workflow.Now(d.ctx)), 0) + deadlineGrace
	}
	if !safe(r.Method) {
		r.IdempotencyKey = c.Key
	}
	if c.HTTP.HasBody {
		body, err := encode(c.HTTP.Body)
		if err != nil {
			panic(fmt.Sprintf("encode a call's body: %v", err)) // expressions return only JSON values
		}
		r.Body = body
	}
	r.addCredentials(d.in.Project, c.HTTP)
	return r
}

// ResourceRequest returns the wire form of the request that reads a web resource for a project.
func ResourceRequest(project string, from *interp.HTTPRequest, timeout time.Duration, maxBytes int64) HTTPRequest {
	r := HTTPRequest{
		Method: from.Method, URL: from.URL, Output: string(from.Output), Redirect: from.Redirect, Timeout: timeout,
		MaxResponseBytes: maxBytes,
	}
	r.addCredentials(project, from)
	return r
}

// addCredentials adds the secrets and the authentication to a request.
func (r *HTTPRequest) addCredentials(project string, from *interp.HTTPRequest) {
	for mark, s := range from.Secrets {
		if r.Secrets == nil {
			r.Secrets = make(map[string]Secret, len(from.Secrets))
		}
		r.Secrets[mark] = Secret{Name: s.Name, Members: s.Members}
	}
	if a := from.Authentication; a != nil {
		r.Authentication = &Authentication{Scheme: string(a.Scheme), Secret: a.Secret}
		if a.Properties != nil {
			properties, err := encode(a.Properties)
			if err != nil {
				panic(fmt.Sprintf("encode a call's authentication: %v", err)) // as for its body
			}
			r.Authentication.Properties = properties
		}
	}
	if r.UsesCredentials() {
		r.Project = project
	}
}

// safe reports whether a request with this method may be sent twice without harm.
func safe(method string) bool {
	return method == "GET" || method == "HEAD" || method == "OPTIONS"
}

// dispatch starts a call: as a local activity if inline is not 0, else as an activity.
func (d *driver) dispatch(id interp.EffectID, r HTTPRequest, inline int64) {
	e := &effect{kind: callEffect, id: id, call: &r, inline: inline}
	if r.Local = inline > 0; r.Local {
		d.startLocalCall(e)
	} else {
		d.startCall(e)
	}
}

// startLocalCall starts a call as a local activity.
func (d *driver) startLocalCall(e *effect) {
	wire := *e.call
	wire.Patience, wire.Inline = d.limits.LocalTimeout, e.inline
	ctx, cancel := workflow.WithCancel(workflow.WithLocalActivityOptions(d.contextOf(e.id), workflow.LocalActivityOptions{
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
		StartToCloseTimeout: wire.Patience + localGrace,
		// It includes the time in which the worker has no free slot for the activity. Nothing is sent before.
		ScheduleToCloseTimeout: wire.Patience + localGrace + localQueue,
	}))
	if d.localCalls++; d.localCalls == 1 {
		d.localSince = workflow.Now(d.ctx)
	}
	d.events += eventsPerLocal
	d.startRequest(e, d.decoded(workflow.ExecuteLocalActivity(ctx, HTTPActivity, wire)), cancel)
}

// startCall starts a call as an activity. Temporal does not retry it: responses and transport errors are results
// (CallError), and after the loss of its worker handleResponse makes the call again, which records it.
func (d *driver) startCall(e *effect) {
	ctx, cancel := workflow.WithCancel(workflow.WithActivityOptions(d.contextOf(e.id), workflow.ActivityOptions{
		StartToCloseTimeout: e.call.Timeout + keepGrace,
		HeartbeatTimeout:    d.limits.Heartbeat,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
	}))
	name := HTTPActivity
	if e.call.UsesCredentials() {
		name = CredentialsActivity
	}
	d.events += eventsPerActivity
	d.startRequest(e, workflow.ExecuteActivity(ctx, name, *e.call), cancel)
}

// startRequest records that a request of a call is about to be sent.
func (d *driver) startRequest(e *effect, future workflow.Future, cancel workflow.CancelFunc) {
	e.future, e.cancel = future, cancel
	e.tries++
	e.sentAt = workflow.Now(d.ctx)
	d.pending = append(d.pending, e)
}

// roomForLocal reports whether a safe call may be a local activity now. While one is in flight, the workflow task stays
// open and no timer, activity or event can be delivered. So none may be expected soon: otherwise the timer of a race
// would be late.
func (d *driver) roomForLocal() bool {
	if d.machine.Listening() {
		return false
	}
	locals := 0
	soon := workflow.Now(d.ctx).Add(d.limits.LocalTimeout + time.Second)
	for _, e := range d.pending {
		switch {
		case e.kind == timerEffect:
			if e.due.Before(soon) {
				return false
			}
		case e.kind != callEffect || !e.call.Local:
			return false
		default:
			locals++
		}
	}
	return locals < d.limits.LocalWidth
}

// inline returns the number of bytes that the result of a safe call as a local activity may add to the workflow task,
// when this many calls are about to start. 0: the call must be an activity.
func (d *driver) inline(calls int) int64 {
	if !d.roomForLocal() {
		return 0
	}
	room := d.limits.LocalRoom - int64(d.localBytes)
	for _, e := range d.pending {
		room -= e.inline
	}
	share := min(d.limits.LocalResult, room/int64(calls))
	if share < minInline {
		return 0
	}
	return share
}

// lost reports whether the result of a request was lost, so that its failure does not describe the request.
func lost(err error) bool {
	if _, timeout := errors.AsType[*temporal.TimeoutError](err); timeout {
		return true
	}
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && app.Type() == InterruptedError
}

// resultOf returns the result of a call for the machine.
func resultOf(r *HTTPRequest, response HTTPResponse, err error) interp.Result {
	if err != nil {
		return failedCall(r, err)
	}
	content, err := decode(response.Content)
	if err != nil {
		return interp.Result{Error: communicationError(502, "Bad answer", fmt.Sprintf("%s %s: %v", r.Method, r.URL, err)),
			Attempts: response.Attempts}
	}
	if r.Output != OutputResponse {
		return interp.Result{Value: content, Attempts: response.Attempts}
	}
	sent := response.Request
	if sent == nil {
		sent = &SentRequest{Method: r.Method, URI: r.URL, Headers: r.Headers}
	}
	exchange := httpmessage.Exchange{
		Method: sent.Method, URI: sent.URI, Sent: sent.Headers, Headers: response.Headers, Status: response.StatusCode,
		Content: content,
	}
	return interp.Result{Value: exchange.Value(), Attempts: response.Attempts}
}

func failedCall(r *HTTPRequest, err error) interp.Result {
	if failure, ok := failureOf(err); ok {
		runError := failure.Error
		return interp.Result{Error: &runError, Unanswered: failure.Category == CategoryTransport, Attempts: failure.Attempts}
	}
	if lost(err) && r.Once {
		detail := fmt.Sprintf("%s %s: the result was lost with the worker that made the call, or could not be kept, so it "+
			"is unknown whether the receiver acted; "+
			"%s: %s forbids to send it again", r.Method, r.URL, dsl.RepeatKey, dsl.RepeatNever)
		return interp.Result{Error: communicationError(504, "Outcome unknown", detail), Unanswered: true}
	}
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok && app.Type() == InterruptedError &&
		strings.Contains(app.Message(), contract.PayloadsUnkept) {
		detail := fmt.Sprintf("%s %s: the answer could not be kept, as the database was away", r.Method, r.URL)
		return interp.Result{Error: communicationError(504, "No answer", detail), Unanswered: true}
	}
	if lost(err) {
		detail := fmt.Sprintf("%s %s: the workers that made the call were lost or did not answer in time", r.Method, r.URL)
		return interp.Result{Error: communicationError(504, "No answer", detail), Unanswered: true}
	}
	runError := dsl.Error{
		Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Call not made",
		Detail: fmt.Sprintf("%s %s: %v", r.Method, r.URL, err),
	}
	return interp.Result{Error: &runError, Unanswered: true}
}

func communicationError(status int, title, detail string) *dsl.Error {
	return &dsl.Error{Type: dsl.ErrorTypeCommunication, Status: status, Title: title, Detail: detail}
}

func decode(data json.RawMessage) (any, error) {
	if len(data) == 0 {
		return nil, nil
	}
	return jq.DecodeJSON(data)
}

func encode(v any) (json.RawMessage, error) { return jq.EncodeJSON(v) }

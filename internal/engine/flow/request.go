package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

// deadlineGrace is how much longer a call may take than its task: the task's own timer has to be first, so that the
// failure is the timeout that the document asked for. Whatever ends the task cancels the call.
const deadlineGrace = 2 * time.Second

// request makes the wire form of a call.
func (d *driver) request(c interp.Call) HTTPRequest {
	r := HTTPRequest{
		Method: c.HTTP.Method, URL: c.HTTP.URL, Headers: c.HTTP.Headers, Query: c.HTTP.Query,
		Output: string(c.HTTP.Output), Redirect: c.HTTP.Redirect,
		Timeout: d.limits.CallTimeout, MaxResponseBytes: d.limits.CallResult,
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
			panic(fmt.Sprintf("encode a call's body: %v", err)) // expressions give only what JSON can hold
		}
		r.Body = body
	}
	d.credentials(&r, c.HTTP)
	return r
}

// credentials puts into a request what its secrets and its authentication are.
func (d *driver) credentials(r *HTTPRequest, from *interp.HTTPRequest) {
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
				panic(fmt.Sprintf("encode a call's authentication: %v", err)) // as with its body
			}
			r.Authentication.Properties = properties
		}
	}
	if r.UsesCredentials() {
		r.Project = d.in.Project
	}
}

// safe tells of a method whether a request may be sent twice without harm.
func safe(method string) bool {
	return method == "GET" || method == "HEAD" || method == "OPTIONS"
}

// dispatch starts a call, as a local activity or as an activity.
func (d *driver) dispatch(id interp.EffectID, r HTTPRequest, local bool) {
	ctx, cancel := workflow.WithCancel(d.detached)
	e := &effect{kind: callEffect, id: id, cancel: cancel, call: &r}
	if r.Local = local; r.Local {
		wire := r
		// The request's own timeout is the first to pass: then the failure tells what happened.
		wire.Timeout = min(r.Timeout, d.limits.LocalTimeout)
		wire.MaxResponseBytes = min(r.MaxResponseBytes, d.limits.LocalResult)
		ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
			ScheduleToCloseTimeout: wire.Timeout + time.Second,
			RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
		})
		e.future = workflow.ExecuteLocalActivity(ctx, HTTPActivity, wire)
		d.localCalls++
		d.events += eventsPerLocal
	} else {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: r.Timeout + 5*time.Second,
			HeartbeatTimeout:    d.limits.Heartbeat,
			// Answers and transport errors are not retried (CallError); what is, is a call whose worker was lost.
			RetryPolicy: &temporal.RetryPolicy{
				InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second,
				MaximumAttempts: d.limits.CallTries,
			},
		})
		name := HTTPActivity
		if r.UsesCredentials() {
			name = CredentialsActivity
		}
		e.future = workflow.ExecuteActivity(ctx, name, r)
		d.events += eventsPerActivity
	}
	d.pending = append(d.pending, e)
}

// roomForLocal tells whether a safe call may be a local activity now. While one is in flight the workflow task stays
// open and no timer, activity or event can report, so nothing else may be about to: else a race's timer would be late.
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

// again tells whether a call that failed as a local activity is to be made as an activity: it took too long or its
// answer was too large for one.
func again(err error) bool {
	if failure, ok := failureOf(err); ok {
		late := failure.Category == CategoryTransport && failure.Error.Status == 504
		return late || failure.Category == CategoryTooLarge
	}
	_, timeout := errors.AsType[*temporal.TimeoutError](err)
	return timeout
}

// resultOf tells the machine how a call went.
func resultOf(r *HTTPRequest, response HTTPResponse, err error) interp.Result {
	if err != nil {
		return failedCall(r, err)
	}
	content, err := decode(response.Content)
	if err != nil {
		return interp.Result{Error: communication(502, "Bad answer", fmt.Sprintf("%s %s: %v", r.Method, r.URL, err))}
	}
	if r.Output != OutputResponse {
		return interp.Result{Value: content}
	}
	sent := response.Request
	if sent == nil {
		sent = &SentRequest{Method: r.Method, URI: r.URL, Headers: r.Headers}
	}
	return interp.Result{Value: map[string]any{
		"request":    map[string]any{"method": sent.Method, "uri": sent.URI, "headers": object(sent.Headers)},
		"statusCode": response.StatusCode,
		"headers":    object(response.Headers),
		"content":    content,
	}}
}

func failedCall(r *HTTPRequest, err error) interp.Result {
	if failure, ok := failureOf(err); ok {
		problem := failure.Error
		return interp.Result{Error: &problem, Unanswered: failure.Category == CategoryTransport}
	}
	if _, timeout := errors.AsType[*temporal.TimeoutError](err); timeout {
		detail := fmt.Sprintf("%s %s: the workers that made the call were lost or did not answer in time", r.Method, r.URL)
		return interp.Result{Error: communication(504, "No answer", detail), Unanswered: true}
	}
	problem := dsl.Error{
		Type: dsl.ErrorTypeRuntime, Status: 500, Title: "Call not made",
		Detail: fmt.Sprintf("%s %s: %v", r.Method, r.URL, err),
	}
	return interp.Result{Error: &problem, Unanswered: true}
}

func communication(status int, title, detail string) *dsl.Error {
	return &dsl.Error{Type: dsl.ErrorTypeCommunication, Status: status, Title: title, Detail: detail}
}

func object(headers map[string]string) map[string]any {
	out := make(map[string]any, len(headers))
	for name, value := range headers {
		out[name] = value
	}
	return out
}

func decode(data json.RawMessage) (any, error) {
	if len(data) == 0 {
		return nil, nil
	}
	return jq.DecodeJSON(data)
}

func encode(v any) (json.RawMessage, error) { return jq.EncodeJSON(v) }

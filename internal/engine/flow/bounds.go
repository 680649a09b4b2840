package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
)

// fits reports whether what an effect sends is within the limit. It is called before the command is given, so that a value that is too
// large is an error of its task, which a try catches, and not one of the workflow task, which would be tried again for ever.
//
// It counts what is sent, too: much in one workflow task would be held in memory at once, and encoding it would keep the deadlock
// detector waiting. So it may end the workflow task before it returns.
func (d *driver) fits(e *effect, what string, size int) bool {
	if size > d.limits.ValueBytes {
		d.refuse(e, interp.TooLarge(what, size, d.limits.ValueBytes, ""))
		return false
	}
	if d.limits.ValueBytes == noBound {
		return true
	}
	if d.encodedBytes += size; d.encodedBytes > d.limits.BreathBytes {
		d.encodedBytes = 0
		d.breathe()
	}
	if d.sentBytes += size; d.sentBytes > d.limits.TaskBytes {
		d.barrier()
		d.sentBytes = size
	}
	return true
}

// refuse has an effect fail without a command: its future is ready at once.
func (d *driver) refuse(e *effect, problem dsl.Error) {
	future, settable := workflow.NewFuture(d.detached)
	settable.SetError(CallError(CategoryRefused, problem, nil))
	e.future, e.cancel, e.refused = future, func() {}, true
	d.pending = append(d.pending, e)
}

// callFits is fits for a request.
func (d *driver) callFits(id interp.EffectID, r HTTPRequest) bool {
	size := len(r.Body) + len(r.URL)
	for _, texts := range []map[string]string{r.Headers, r.Query} {
		for name, value := range texts {
			size += len(name) + len(value)
		}
	}
	if r.Authentication != nil {
		size += len(r.Authentication.Properties)
	}
	return d.fits(&effect{kind: callEffect, id: id, call: &HTTPRequest{Method: r.Method}}, "the request", size)
}

// decoded decodes the answer of a local activity as soon as it is there. The SDK shares its payload with the marker for the history, in
// which a large one is replaced by a reference when the workflow task ends: decoded after that, it would be the reference.
func (d *driver) decoded(call workflow.Future) workflow.Future {
	answer, settable := workflow.NewFuture(d.detached)
	workflow.Go(d.detached, func(ctx workflow.Context) {
		var response HTTPResponse
		err := call.Get(ctx, &response)
		settable.Set(response, err)
	})
	return answer
}

// storageAway reports whether an activity failed for want of the database that keeps large payloads, in the way that the text stands for:
// contract.PayloadsUnread or contract.PayloadsUnkept.
func (d *driver) storageAway(err error, way string) bool {
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && d.limits.ValueBytes != noBound && !app.HasDetails() && strings.Contains(app.Message(), way)
}

// sizeOf is the size of a request's JSON.
func sizeOf(request any) int {
	data, err := json.Marshal(request)
	if err != nil {
		panic(fmt.Sprintf("encode a request: %v", err)) // expressions give only what JSON can hold
	}
	return len(data)
}

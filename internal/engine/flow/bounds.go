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

// fits reports whether the data of an effect is within the limit. It is called before the command is issued. A value
// that is too large is thus an error of its task, which a try can catch. It does not fail the workflow task, which
// would be retried for ever.
//
// It also counts the data that is sent. Much data in one workflow task would be held in memory at once, and encoding it
// would block the deadlock detector. So fits may end the workflow task before it returns.
func (d *driver) fits(e *effect, what string, size int) bool {
	if size > d.limits.ValueBytes {
		d.reject(e, interp.TooLarge(what, size, d.limits.ValueBytes, ""))
		return false
	}
	if d.encodedBytes += size; d.encodedBytes > d.limits.YieldBytes {
		d.encodedBytes = 0
		d.yield()
	}
	if d.sentBytes += size; d.sentBytes > d.limits.TaskBytes {
		d.barrier()
		d.sentBytes = size
	}
	return true
}

// reject fails an effect without a command: its future is ready at once.
func (d *driver) reject(e *effect, runError dsl.Error) {
	future, settable := workflow.NewFuture(d.detached)
	settable.SetError(CallError(CategoryRefused, runError, nil))
	e.future, e.cancel, e.rejected = future, func() {}, true
	d.pending = append(d.pending, e)
}

// callFits is fits for an HTTP request.
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

// decoded decodes the response of a local activity as soon as it is ready. The SDK shares its payload with the marker
// in the history. When the workflow task ends, a large payload in the marker is replaced by a reference, and decoding
// it after that would return the reference.
func (d *driver) decoded(call workflow.Future) workflow.Future {
	answer, settable := workflow.NewFuture(d.detached)
	workflow.Go(d.detached, func(ctx workflow.Context) {
		var response HTTPResponse
		err := call.Get(ctx, &response)
		settable.Set(response, err)
	})
	return answer
}

// storageUnavailable reports whether an activity failed because the database that stores large payloads was
// unavailable. way selects the failed operation: contract.PayloadsUnread or contract.PayloadsUnkept.
func (d *driver) storageUnavailable(err error, way string) bool {
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && !app.HasDetails() && strings.Contains(app.Message(), way)
}

// sizeOf returns the size of a request's JSON.
func sizeOf(request any) int {
	data, err := json.Marshal(request)
	if err != nil {
		panic(fmt.Sprintf("encode a request: %v", err)) // expressions return only JSON values
	}
	return len(data)
}

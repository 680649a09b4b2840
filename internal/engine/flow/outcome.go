package flow

import (
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
)

// failed returns the workflow's error for a run that failed or timed out: a non-retryable application error with the
// error's type, and with the error and the run's status as details.
func failed(o interp.Outcome) error {
	return temporal.NewApplicationErrorWithOptions(o.Error.Error(), o.Error.Type, temporal.ApplicationErrorOptions{
		NonRetryable: true,
		Details:      []any{*o.Error, o.Status},
	})
}

// Failed reads the error with which a run's workflow ended, as returned by a client or stored in a history's failure.
// It returns the run's status (failed, timed_out or canceled) and, unless it was canceled, its error. For an error
// that the interpreter did not return it returns failed and a runtime error; for nil, completed.
func Failed(err error) (interp.Status, *dsl.Error) {
	if err == nil {
		return interp.StatusCompleted, nil
	}
	if _, canceled := errors.AsType[*temporal.CanceledError](err); canceled {
		return interp.StatusCanceled, nil
	}
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok && app.HasDetails() {
		var runError dsl.Error
		var status interp.Status
		if app.Details(&runError, &status) == nil && runError.Type != "" {
			return status, &runError
		}
	}
	return interp.StatusFailed, &dsl.Error{
		Type: dsl.ErrorTypeRuntime, Status: 500, Title: "The run ended unexpectedly", Detail: err.Error(), Instance: "/",
	}
}

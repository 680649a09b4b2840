package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/logger"
)

// retryDelay is the retry delay returned when a backend did not answer.
const retryDelay = 2 * time.Second

// describe returns a dispatcher with its detail and what could not be read of it.
func describe(ctx context.Context, d dispatchtype.Dispatcher) Dispatcher {
	out := Dispatcher{Dispatcher: d, Unread: unread(ctx, d.Errors)}
	if d.Status != dispatchtype.Routing && d.Status != dispatchtype.Parked {
		out.Detail = d.Reason
	}
	if len(d.Others) > 0 {
		out.Detail = strings.TrimPrefix(out.Detail+"; also open under an older ID: "+listed(d.Others), "; ")
	}
	if len(d.Unknown) > 0 {
		out.Detail = strings.TrimPrefix(out.Detail+"; foreign dispatcher on its task queue: "+listed(d.Unknown), "; ")
	}
	return out
}

// listed names the first of several workflows.
func listed(others []dispatchtype.Execution) string {
	const most = 5
	ids := make([]string, min(len(others), most))
	for i := range ids {
		ids[i] = strconv.Quote(others[i].WorkflowID)
	}
	text := strings.Join(ids, ", ")
	if more := len(others) - len(ids); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// unread describes for callers which backends did not answer. The underlying errors may contain host names, so they
// only go to the log.
func unread(ctx context.Context, failed []dispatchtype.PartError) []string {
	var lines []string
	for _, e := range failed {
		logger.FromContext(ctx).WarnContext(ctx, "Dispatcher status is incomplete", "part", string(e.Part), "error", e.Err)
		lines = append(lines, fmt.Sprintf("%s: %s; see the server's log for the cause", e.Part, unavailableReason(e)))
	}
	return lines
}

// unavailableReason names the backend that did not answer, and what to check.
func unavailableReason(e dispatchtype.PartError) string {
	if errors.Is(e.Err, dispatchtype.ErrNotListed) {
		return "Temporal does not answer the list of open dispatchers, which its visibility store serves; other requests " +
			"may work"
	}
	switch e.Part {
	case dispatchtype.PartLeases:
		return "Redis, which has the leases, does not answer; check redis in the configuration"
	case dispatchtype.PartInbox:
		return "the database does not answer; check store.dsn"
	case dispatchtype.PartTemporal:
		return "Temporal does not answer; check `signalbox system status`"
	case dispatchtype.PartState:
		return "the dispatcher's workflow does not answer for its workers: a worker that serves the project must run, and " +
			"Temporal must answer (`signalbox system status`)"
	default:
		return "it does not answer"
	}
}

// answerShown is the number of bytes of an answer of Temporal that an error quotes.
const answerShown = 300

// statusError returns the error for a status that cannot be read, with the backend that failed. As with [unread], the
// underlying error only goes to the log, except for a list that Temporal refused: no other command shows the cause.
func statusError(ctx context.Context, err error) error {
	if _, ok := apperror.From(err); ok || err == nil {
		return err
	}
	logger.FromContext(ctx).WarnContext(ctx, "Dispatcher status cannot be read", "error", err)
	reason, text := apperror.LeasesUnavailable, "the status of dispatchers cannot be read"
	failed, _ := errors.AsType[dispatchtype.PartError](err)
	switch {
	case errors.Is(err, dispatchtype.ErrNotListed):
		return apperror.New(apperror.Unavailable, apperror.EngineListFailed,
			"%s; its visibility store serves lists, and other requests may work", apperror.Excerpt(err.Error(),
				answerShown)).WithRetry(retryDelay).WithCause(err)
	case failed.Part == dispatchtype.PartTemporal:
		reason, text = apperror.EngineUnavailable, "a dispatcher cannot be read from Temporal"
	case failed.Part == dispatchtype.PartInbox:
		reason, text = apperror.StoreUnavailable, "the progress of dispatchers cannot be read from the database"
	case failed.Part == dispatchtype.PartLeases:
		text = "the leases cannot be read from Redis"
	}
	return apperror.New(apperror.Unavailable, reason, "%s; see the server's log for the cause",
		text).WithRetry(retryDelay).WithCause(err)
}

// publicError returns the text of an error for callers; the log has the error.
func publicError(ctx context.Context, err error) string {
	if f, ok := apperror.From(err); ok {
		return f.Message
	}
	logger.FromContext(ctx).WarnContext(ctx, "Dispatcher status is incomplete", "error", err)
	return "cannot be read; the server's log has the cause"
}

package rpc

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
)

// calls is the innermost interceptor: it sets deadline and logger, maps errors and recovers from panics.
type calls struct {
	timeout  time.Duration
	stopping *stopping
}

var _ connect.Interceptor = (*calls)(nil)

// WrapUnary wraps a unary call.
func (c *calls) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (res connect.AnyResponse, err error) {
		ctx = logger.With(ctx, "procedure", procedure(req.Spec()))
		if _, ok := ctx.Deadline(); !ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, c.timeout)
			defer cancel()
		}
		defer func() { err = mapResult(ctx, recover(), err) }()
		return next(ctx, req)
	}
}

// WrapStreamingHandler wraps a stream; the stream ends when the server stops.
func (c *calls) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) (err error) {
		ctx = logger.With(ctx, "procedure", procedure(conn.Spec()))
		streamCtx, release := c.stopping.context(ctx)
		defer release()
		defer func() { err = mapResult(ctx, recover(), err) }()
		return next(streamCtx, conn)
	}
}

// WrapStreamingClient does not change clients.
func (c *calls) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func procedure(spec connect.Spec) string { return strings.TrimPrefix(spec.Procedure, "/") }

// referenceLength is the number of characters of the reference in an internal error.
const referenceLength = 12

// mapResult maps the result of a method to the API's error and logs causes that the response omits.
func mapResult(ctx context.Context, panicked any, err error) error {
	log := logger.FromContext(ctx)
	if panicked != nil {
		if panicked == http.ErrAbortHandler { //nolint:errorlint,err113 // net/http compares it the same way
			panic(panicked)
		}
		reference := rand.Text()[:referenceLength]
		log.ErrorContext(ctx, "A call panicked", "reference", reference, "panic", fmt.Sprint(panicked),
			"stack", string(debug.Stack()))
		return apierror.ReferredError(reference)
	}
	if err == nil {
		return nil
	}
	answer, expected := apierror.Error(err)
	if !expected {
		reference := rand.Text()[:referenceLength]
		log.ErrorContext(ctx, "A call failed", "reference", reference, "error", err)
		return apierror.ReferredError(reference)
	}
	// The message is not logged: it may quote input of the caller, which readers of the log must not see.
	attributes := []any{"code", answer.Code().String()}
	if f, ok := apperror.From(err); ok {
		attributes = append(attributes, "reason", f.Reason)
		if f.Detail != "" {
			attributes = append(attributes, "detail", f.Detail)
		}
	}
	log.DebugContext(ctx, "A call was answered with an error", attributes...)
	return answer
}

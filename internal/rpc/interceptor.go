package rpc

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/rpc/fail"
)

// calls is the innermost interceptor: deadline, logger, errors, panics.
type calls struct {
	timeout  time.Duration
	stopping *stopping
}

var _ connect.Interceptor = (*calls)(nil)

// WrapUnary guards a unary call.
func (c *calls) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (res connect.AnyResponse, err error) {
		ctx = logger.With(ctx, "procedure", procedure(req.Spec()))
		if _, ok := ctx.Deadline(); !ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, c.timeout)
			defer cancel()
		}
		defer func() { err = conclude(ctx, recover(), err) }()
		return next(ctx, req)
	}
}

// WrapStreamingHandler guards a stream; it ends when the server stops.
func (c *calls) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) (err error) {
		ctx = logger.With(ctx, "procedure", procedure(conn.Spec()))
		streamCtx, release := c.stopping.context(ctx)
		defer release()
		defer func() { err = conclude(ctx, recover(), err) }()
		return next(streamCtx, conn)
	}
}

// WrapStreamingClient leaves clients alone.
func (c *calls) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func procedure(spec connect.Spec) string { return strings.TrimPrefix(spec.Procedure, "/") }

// conclude turns what a method ended with into the API's error, and logs what callers are not told.
func conclude(ctx context.Context, panicked any, err error) error {
	log := logger.FromContext(ctx)
	if panicked != nil {
		if panicked == http.ErrAbortHandler { //nolint:errorlint,err113 // net/http compares it so
			panic(panicked)
		}
		log.ErrorContext(ctx, "A call panicked", "panic", fmt.Sprint(panicked), "stack", string(debug.Stack()))
		return fail.Internal()
	}
	if err == nil {
		return nil
	}
	answer, expected := fail.Error(err)
	if !expected {
		log.ErrorContext(ctx, "A call failed", "error", err)
		return answer
	}
	// The message is the caller's: it may quote what they have sent, which is not for whoever reads logs.
	told := []any{"code", answer.Code().String()}
	if f, ok := fault.From(err); ok {
		told = append(told, "reason", f.Reason)
	}
	log.DebugContext(ctx, "A call was answered with an error", told...)
	return answer
}

package rpc

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"time"

	"connectrpc.com/connect"

	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/rpc/fail"
	"github.com/signalbox-dev/signalbox/internal/rpc/gate"
	"github.com/signalbox-dev/signalbox/internal/rpc/reason"
)

// entry is what every request passes first.
func (s *Server) entry(loopback bool) http.Handler {
	access := s.opts.Access
	options := gate.Options{Rate: access.Rate, Burst: access.Burst, Refused: access.Refused}
	if access.Authenticator != nil {
		options.Tokens = access.Authenticator
	}
	open := gate.New(options).Wrap(s.routes)
	inner := open
	if loopback && access.Authenticator == nil {
		inner = guard(inner) // no page has a token, so with tokens there is nothing that a page could borrow
	}
	inner = s.opts.Codec.allow(open, inner)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(1)
		defer s.calls.Done()
		defer recovered(r)
		timed := &timedWriter{ResponseWriter: w, control: http.NewResponseController(w), timeout: s.opts.StallTimeout}
		body := &timedBody{ReadCloser: r.Body, control: timed.control, timeout: s.opts.StallTimeout}
		r.Body = body
		body.bound()
		defer body.bound()
		if s.stopping.begun() {
			w.Header().Set("Connection", "close")
		}
		inner.ServeHTTP(timed, r)
	})
}

// recovered logs a panic outside of methods, which have their own. The connection is cut, as net/http would do.
func recovered(r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v != http.ErrAbortHandler { //nolint:errorlint,err113 // net/http compares it so
		logger.FromContext(r.Context()).ErrorContext(r.Context(), "A request panicked",
			"path", r.URL.Path, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	}
	panic(http.ErrAbortHandler)
}

// timedWriter gives every write its own deadline, so that a client that stopped reading does not hold a stream open. There
// is none between writes: in HTTP/2 it would end a stream that is merely quiet.
type timedWriter struct {
	http.ResponseWriter

	control *http.ResponseController
	timeout time.Duration
}

// Unwrap gives http.ResponseController the writer below.
func (t *timedWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// Write writes with a deadline.
func (t *timedWriter) Write(p []byte) (int, error) {
	defer t.limit()()
	return t.ResponseWriter.Write(p)
}

// Flush flushes with a deadline.
func (t *timedWriter) Flush() {
	defer t.limit()()
	_ = t.control.Flush() // the next write fails as well
}

// limit sets the deadline and returns what takes it off. Not every writer has deadlines.
func (t *timedWriter) limit() func() {
	_ = t.control.SetWriteDeadline(time.Now().Add(t.timeout))
	return func() { _ = t.control.SetWriteDeadline(time.Time{}) }
}

// timedBody gives every read its own deadline, and none to the time between: a stream may stay open after its request
// was read. A read that failed leaves its deadline behind, because net/http reads on when the handler has returned.
type timedBody struct {
	io.ReadCloser

	control *http.ResponseController
	timeout time.Duration
	ended   bool
}

// Read reads with a deadline.
func (t *timedBody) Read(p []byte) (int, error) {
	t.limit()
	n, err := t.ReadCloser.Read(p)
	t.ended = t.ended || errors.Is(err, io.EOF)
	if err == nil || t.ended {
		_ = t.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// bound covers what net/http reads by itself of a body that the handler did not want, before and after its answer.
func (t *timedBody) bound() {
	if !t.ended && t.ReadCloser != http.NoBody {
		t.limit()
	}
}

// limit sets the deadline. Not every reader has deadlines.
func (t *timedBody) limit() { _ = t.control.SetReadDeadline(time.Now().Add(t.timeout)) }

// notFound answers for paths that do not exist.
func notFound(w http.ResponseWriter, r *http.Request) {
	fail.WriteREST(w, fail.New(connect.CodeUnimplemented, reason.Unimplemented,
		fmt.Sprintf("there is nothing at %s; GET / tells where things are", r.URL.Path)), http.StatusNotFound)
}

// readOnly refuses what would change something.
func readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Allow", "GET, HEAD")
		fail.WriteREST(w, fail.New(connect.CodeUnimplemented, reason.Unimplemented,
			fmt.Sprintf("method %s is not allowed here: use GET", r.Method)), http.StatusMethodNotAllowed)
	})
}

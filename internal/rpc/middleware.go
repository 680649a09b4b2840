package rpc

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
	"github.com/signalbox-dev/signalbox/internal/rpc/handler"
	"github.com/signalbox-dev/signalbox/internal/rpc/permission"
)

// rootHandler returns the outermost handler, which every request passes first.
func (s *Server) rootHandler(loopback bool) http.Handler {
	open := s.access.Wrap(s.bodies.wrap(s.routes))
	inner := open
	if loopback && s.opts.Access.Authenticator == nil {
		inner = refuseForeignPages(inner) // pages have no token, so with tokens a page cannot act for the user
	}
	inner = s.opts.Codec.allow(open, inner)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(1)
		defer s.calls.Done()
		defer recoverPanic(r)
		ctx, slot := handler.WithHeldSlot(r.Context())
		defer slot.Release()
		r = r.WithContext(ctx)
		body := s.bodies.open(w, r)
		defer body.finish()
		timed := &timedWriter{
			ResponseWriter: w, control: http.NewResponseController(w), timeout: s.opts.StallTimeout,
			begin: body.beforeResponse, before: slot.Release,
		}
		if s.stopping.begun() {
			w.Header().Set("Connection", "close")
		}
		inner.ServeHTTP(timed, r)
	})
}

// authMiddleware returns the middleware that authenticates requests.
//
// unrouted reports whether no path of the API, nor of anything else, matches a request.
func (o Options) authMiddleware(unrouted func(*http.Request) bool) *permission.AuthMiddleware {
	options := permission.AuthOptions{Rate: o.Access.Rate, Burst: o.Access.Burst, Refused: o.Access.Refused}
	if o.Access.Authenticator != nil {
		options.Tokens = o.Access.Authenticator
		if o.Sessions != nil {
			options.Sessions = o.Sessions
		}
	}
	if o.UI != nil {
		options.Public = func(r *http.Request) bool { return o.UI.Serves(r.URL.Path) || isNavigation(r) && unrouted(r) }
	}
	return permission.NewAuthMiddleware(options)
}

// recoverPanic logs a panic outside of methods, which have their own recovery, and aborts the connection as net/http
// does.
func recoverPanic(r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v != http.ErrAbortHandler { //nolint:errorlint,err113 // net/http compares it the same way
		logger.FromContext(r.Context()).ErrorContext(r.Context(), "A request panicked",
			"path", r.URL.Path, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	}
	panic(http.ErrAbortHandler)
}

// timedWriter gives each write its own deadline, so that a client that stopped reading does not hold a stream open.
// There is no deadline between writes: in HTTP/2 it would end an idle stream.
type timedWriter struct {
	http.ResponseWriter

	control *http.ResponseController
	timeout time.Duration
	begin   func() // called before the response begins
	begun   bool
	before  func() // called before each write and flush
}

// Unwrap gives http.ResponseController the underlying writer.
func (t *timedWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// WriteHeader begins the response.
func (t *timedWriter) WriteHeader(status int) {
	t.start()
	t.ResponseWriter.WriteHeader(status)
}

func (t *timedWriter) start() {
	if !t.begun {
		t.begun = true
		t.begin()
	}
}

// Write writes with a deadline.
func (t *timedWriter) Write(p []byte) (int, error) {
	t.start()
	t.before()
	defer t.limit()()
	return t.ResponseWriter.Write(p)
}

// Flush flushes with a deadline.
func (t *timedWriter) Flush() {
	t.start()
	t.before()
	defer t.limit()()
	_ = t.control.Flush() // the next write fails as well
}

// limit sets the deadline and returns a function that clears it. Some writers have no deadlines.
func (t *timedWriter) limit() func() {
	_ = t.control.SetWriteDeadline(time.Now().Add(t.timeout))
	return func() { _ = t.control.SetWriteDeadline(time.Time{}) }
}

// isNavigation reports whether a request is one of a browser for a page.
func isNavigation(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "text/html")
}

// notFound answers requests for unknown paths.
func notFound(w http.ResponseWriter, r *http.Request) {
	apierror.WriteREST(w, apierror.New(connect.CodeUnimplemented, apierror.Unimplemented,
		fmt.Sprintf("there is nothing at %s; GET / lists the paths", r.URL.Path)), http.StatusNotFound)
}

// readOnly rejects methods other than GET and HEAD.
func readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Allow", "GET, HEAD")
		apierror.WriteREST(w, apierror.New(connect.CodeUnimplemented, apierror.Unimplemented,
			fmt.Sprintf("method %s is not allowed here: use GET", r.Method)), http.StatusMethodNotAllowed)
	})
}

// Package rest serves the API's REST paths: the HTTP annotations of the protos, transcoded by Vanguard onto the
// Connect handlers.
//
//	handler, err := rest.New(services, limit)
//
// Around Vanguard it adds what a person with curl relies on: every error is a google.rpc.Status with a reason, a
// request is bounded before and after decompression, and a method never runs for a request that could not be read
// (Vanguard answers the caller with the error, but hands an empty request on).
//
// Vanguard lets the query win over the path, and the path over the body, and decodes a path twice. So package route matches the
// request first, refuses an argument that is given twice, and hands Vanguard the canonical path; a request for which Vanguard chooses
// another method than package route is an internal error.
package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"connectrpc.com/vanguard"

	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/rpc/body"
	"github.com/signalbox-dev/signalbox/internal/rpc/fail"
	"github.com/signalbox-dev/signalbox/internal/rpc/jsoncodec"
	"github.com/signalbox-dev/signalbox/internal/rpc/reason"
	"github.com/signalbox-dev/signalbox/internal/rpc/route"
)

// Service is one Connect service: its path, as generated code returns it, and its handler.
type Service struct {
	Path    string
	Handler http.Handler
}

// New returns the handler of all REST paths of the services. Requests are limited to limit bytes.
func New(services []Service, limit int64) (http.Handler, error) {
	targets, paths := make([]*vanguard.Service, len(services)), make([]string, len(services))
	for i, s := range services {
		paths[i] = s.Path
		// Always to binary: passed on as JSON, a body would be read, and refused, by Connect instead.
		targets[i] = vanguard.NewService(s.Path, unlessFailed(s.Handler), vanguard.WithTargetCodecs(vanguard.CodecProto))
	}
	transcoder, err := vanguard.NewTranscoder(targets,
		vanguard.WithCodec(func(vanguard.TypeResolver) vanguard.Codec { return jsoncodec.NewREST() }),
		vanguard.WithUnknownHandler(http.HandlerFunc(unknown)))
	if err != nil {
		return nil, fmt.Errorf("build the REST paths: %w", err)
	}
	table, err := route.New(paths...)
	if err != nil {
		return nil, fmt.Errorf("build the REST paths: %w", err)
	}
	return &handler{transcoder: transcoder, table: table, limit: limit}, nil
}

type handler struct {
	transcoder http.Handler
	table      *route.Table
	limit      int64
}

// ServeHTTP answers one REST call.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	match, ok := h.table.Match(r.Method, r.URL.EscapedPath())
	if !ok {
		h.unmatched(w, r)
		return
	}
	if !isJSON(r) {
		fail.WriteREST(w, fail.New(connect.CodeInvalidArgument, fault.InvalidArgument, fmt.Sprintf(
			"content type %q is not supported here: send JSON with Content-Type: application/json", r.Header.Get("Content-Type"))),
			http.StatusUnsupportedMediaType)
		return
	}
	if e := h.prepare(r, match); e != nil {
		fail.WriteREST(w, e, fail.HTTPStatus(e))
		return
	}
	a := &answer{ResponseWriter: w, procedure: fmt.Sprintf("/%s/%s", match.Method.Parent().FullName(), match.Method.Name())}
	h.transcoder.ServeHTTP(a, r.WithContext(context.WithValue(r.Context(), answerKey{}, a)))
	a.finish()
}

// unmatched answers a request that no annotation matches.
func (h *handler) unmatched(w http.ResponseWriter, r *http.Request) {
	allowed := strings.Join(h.table.Allowed(r.URL.EscapedPath()), ", ")
	if allowed == "" {
		unknown(w, r)
		return
	}
	w.Header().Set("Allow", allowed)
	fail.WriteREST(w, fail.New(connect.CodeUnimplemented, reason.Unimplemented,
		fmt.Sprintf("method %s is not allowed here: use %s", r.Method, allowed)), http.StatusMethodNotAllowed)
}

// isJSON tells whether the body, if there is one, is said to be JSON, and says so as Vanguard knows it.
func isJSON(r *http.Request) bool {
	given := strings.Join(r.Header.Values("Content-Type"), ", ")
	if given == "" {
		r.Header.Del("Content-Type")
		return true
	}
	media, params, err := mime.ParseMediaType(given)
	charset := strings.ToLower(params["charset"])
	if err != nil || media != "application/json" || (charset != "" && charset != "utf-8") {
		return false
	}
	r.Header.Set("Content-Type", media)
	return true
}

// prepare reads the body within the limit, makes it plain, and checks that it gives each argument once.
func (h *handler) prepare(r *http.Request, match route.Match) *connect.Error {
	raw, e := body.Read(r, h.limit)
	if e != nil {
		return e
	}
	if _, err := match.Check(r.URL.RawQuery, raw); err != nil {
		problem, _ := fail.Error(err)
		return problem
	}
	r.URL.Path, r.URL.RawPath = match.Path, ""
	r.Header.Del("Connect-Protocol-Version") // by which Vanguard would read the request as one of Connect's protocol
	r.Header.Del("Content-Encoding")
	r.Header.Del("Content-Length")
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	return nil
}

func unknown(w http.ResponseWriter, r *http.Request) {
	fail.WriteREST(w, fail.New(connect.CodeUnimplemented, reason.Unimplemented,
		fmt.Sprintf("there is nothing at %s; docs/reference/api.md lists the paths", r.URL.Path)), http.StatusNotFound)
}

type answerKey struct{}

// answer holds back errors until they can be completed.
type answer struct {
	http.ResponseWriter

	procedure string // the method that package route has chosen
	begun     bool   // a status was set
	reached   bool   // the request was read and a method called
	status    int    // of a held error
	body      bytes.Buffer
}

// Unwrap gives http.ResponseController the writer with the deadlines.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader holds errors.
func (a *answer) WriteHeader(status int) {
	if a.begun {
		return
	}
	a.begun = true
	if status >= http.StatusBadRequest {
		a.status = status
		return
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write writes to the body that is held or sent.
func (a *answer) Write(p []byte) (int, error) {
	a.begun = true
	if a.status != 0 {
		return a.body.Write(p)
	}
	return a.ResponseWriter.Write(p)
}

// Flush sends what is not held; Vanguard needs a writer that can.
func (a *answer) Flush() {
	if f, ok := a.ResponseWriter.(http.Flusher); ok && a.begun && a.status == 0 {
		f.Flush()
	}
}

func (a *answer) finish() {
	if a.status == 0 {
		return
	}
	var s struct {
		Code    uint32 `json:"code"`
		Message string `json:"message"`
		Details []struct {
			Reason string `json:"reason"`
		} `json:"details"`
	}
	err := json.Unmarshal(a.body.Bytes(), &s)
	if err == nil && len(s.Details) > 0 {
		a.Header().Set("Content-Type", "application/json")
		a.Header().Del("Content-Length")
		status := a.status
		for _, d := range s.Details {
			if d.Reason != "" && status == http.StatusTooManyRequests { // which is all that Vanguard makes of the code
				status = reason.HTTPStatus(connect.Code(s.Code), d.Reason)
			}
		}
		a.ResponseWriter.WriteHeader(status)
		_, _ = a.ResponseWriter.Write(append(a.body.Bytes(), '\n')) // the caller hung up
		return
	}
	status := a.status
	var e *connect.Error
	switch {
	case a.reached:
		e, status = fail.Internal(), http.StatusInternalServerError
	case err == nil:
		e, status = fail.New(connect.CodeInvalidArgument, fault.InvalidArgument, "request: "+s.Message), http.StatusBadRequest
	default:
		e = fail.New(connect.CodeInvalidArgument, fault.InvalidArgument, "request: "+strings.TrimSpace(a.body.String()))
	}
	fail.WriteREST(a.ResponseWriter, e, status)
}

// unlessFailed calls next only with a request that Vanguard could read: reading the body runs the transcoding, and
// when that fails Vanguard has begun the answer by then.
func unlessFailed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, ok := r.Context().Value(answerKey{}).(*answer)
		if !ok {
			http.Error(w, errNoAnswer.Error(), http.StatusInternalServerError)
			return
		}
		raw, err := io.ReadAll(r.Body)
		if a.begun {
			return
		}
		if err != nil {
			fail.WriteREST(a, body.Bad(err.Error()), http.StatusBadRequest)
			return
		}
		a.reached = true
		if r.URL.Path != a.procedure {
			internal := fail.Internal()
			fail.WriteREST(a, internal, fail.HTTPStatus(internal))
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
		next.ServeHTTP(w, r)
	})
}

var errNoAnswer = errors.New("the transcoder was not called through this package's handler")

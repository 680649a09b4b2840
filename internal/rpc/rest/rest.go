// Package rest serves the API's REST paths: the HTTP annotations of the protos, transcoded by Vanguard onto the
// Connect handlers.
//
//	handler, err := rest.New(services, options)
//
// It adds to Vanguard: every error is a google.rpc.Status with a reason, a request is bounded before and after decompression, and a
// method never runs for a request that could not be read (Vanguard returns the error to the caller, but passes an empty request on).
//
// In Vanguard the query overrides the path, and the path overrides the body, and a path is decoded twice. Therefore this package matches
// the request first, rejects an argument that occurs twice, and passes the canonical path to Vanguard. A request for which Vanguard selects
// another method than this package is an internal error.
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
	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
	"github.com/signalbox-dev/signalbox/internal/rpc/fieldlimit"
)

// Service is one Connect service: its path, as generated code returns it, and its handler.
type Service struct {
	Path    string
	Handler http.Handler
}

// Options configure the handler.
type Options struct {
	// MaxRequestBytes is the maximum size of a request.
	MaxRequestBytes int64
	// CompressFrom is the size in bytes from which responses are compressed for clients that accept it.
	CompressFrom int
}

// New returns the handler of all REST paths of the services.
func New(services []Service, opts Options) (http.Handler, error) {
	targets, paths := make([]*vanguard.Service, len(services)), make([]string, len(services))
	for i, s := range services {
		paths[i] = s.Path
		// Always to binary: if JSON were passed on, Connect would parse, and reject, the body instead.
		targets[i] = vanguard.NewService(s.Path, skipUnreadable(s.Handler), vanguard.WithTargetCodecs(vanguard.CodecProto))
	}
	transcoder, err := vanguard.NewTranscoder(targets,
		vanguard.WithCodec(func(vanguard.TypeResolver) vanguard.Codec { return fieldlimit.NewREST() }),
		vanguard.WithUnknownHandler(http.HandlerFunc(unknown)))
	if err != nil {
		return nil, fmt.Errorf("build the REST paths: %w", err)
	}
	table, err := NewTable(paths...)
	if err != nil {
		return nil, fmt.Errorf("build the REST paths: %w", err)
	}
	compress, err := gzhttp.NewWrapper(gzhttp.MinSize(opts.CompressFrom), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false))
	if err != nil {
		return nil, fmt.Errorf("build the compression of the REST paths: %w", err)
	}
	return compress(&restHandler{transcoder: transcoder, table: table, limit: opts.MaxRequestBytes}), nil
}

type restHandler struct {
	transcoder http.Handler
	table      *Table
	limit      int64
}

// ServeHTTP handles one REST call.
func (h *restHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	match, ok := h.table.Match(r.Method, r.URL.EscapedPath())
	if !ok {
		h.unmatched(w, r)
		return
	}
	if !isJSON(r) {
		apierror.WriteREST(w, apierror.New(connect.CodeInvalidArgument, apperror.InvalidArgument, fmt.Sprintf(
			"content type %q is not supported here: send JSON with Content-Type: application/json", r.Header.Get("Content-Type"))),
			http.StatusUnsupportedMediaType)
		return
	}
	if e := h.prepare(r, match); e != nil {
		apierror.WriteREST(w, e, apierror.HTTPStatus(e))
		return
	}
	a := &answer{ResponseWriter: w, procedure: fmt.Sprintf("/%s/%s", match.Method.Parent().FullName(), match.Method.Name())}
	h.transcoder.ServeHTTP(a, r.WithContext(context.WithValue(r.Context(), answerKey{}, a)))
	a.finish()
}

// unmatched responds to a request that no annotation matches.
func (h *restHandler) unmatched(w http.ResponseWriter, r *http.Request) {
	allowed := strings.Join(h.table.Allowed(r.URL.EscapedPath()), ", ")
	if allowed == "" {
		unknown(w, r)
		return
	}
	w.Header().Set("Allow", allowed)
	apierror.WriteREST(w, apierror.New(connect.CodeUnimplemented, apierror.Unimplemented,
		fmt.Sprintf("method %s is not allowed here: use %s", r.Method, allowed)), http.StatusMethodNotAllowed)
}

// isJSON reports whether the body, if there is one, is declared as JSON, and sets the content type that Vanguard expects.
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

// prepare reads the body within the limit, removes its content encoding, and checks that each argument occurs once.
func (h *restHandler) prepare(r *http.Request, match Match) *connect.Error {
	raw, e := ReadBody(r, h.limit)
	if e != nil {
		return e
	}
	if _, err := match.Check(r.URL.RawQuery, raw); err != nil {
		failure, _ := apierror.Error(err)
		return failure
	}
	r.URL.Path, r.URL.RawPath = match.Path, ""
	r.Header.Del("Connect-Protocol-Version") // with it, Vanguard would parse the request as one of Connect's protocol
	r.Header.Del("Content-Encoding")
	r.Header.Del("Content-Length")
	r.Header.Del("Accept-Encoding") // otherwise the method would compress a message that is decoded again in this process
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	return nil
}

func unknown(w http.ResponseWriter, r *http.Request) {
	apierror.WriteREST(w, apierror.New(connect.CodeUnimplemented, apierror.Unimplemented,
		fmt.Sprintf("there is nothing at %s; docs/reference/api.md lists the paths", r.URL.Path)), http.StatusNotFound)
}

type answerKey struct{}

// answer holds back errors until they are completed.
type answer struct {
	http.ResponseWriter

	procedure string // the matched method
	begun     bool   // a status was set
	reached   bool   // the request was read and a method called
	status    int    // status of the held error
	body      bytes.Buffer
}

// Unwrap gives http.ResponseController access to the writer's deadlines.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader holds back error statuses.
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

// Write writes to the held body, or directly if nothing is held.
func (a *answer) Write(p []byte) (int, error) {
	a.begun = true
	if a.status != 0 {
		return a.body.Write(p)
	}
	return a.ResponseWriter.Write(p)
}

// Flush flushes unless an error is held; Vanguard requires a Flusher.
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
			if d.Reason != "" && status == http.StatusTooManyRequests { // Vanguard uses 429 for every exhausted error
				status = apierror.StatusOf(connect.Code(s.Code), d.Reason)
			}
		}
		a.ResponseWriter.WriteHeader(status)
		_, _ = a.ResponseWriter.Write(append(a.body.Bytes(), '\n')) // fails only if the caller disconnected
		return
	}
	status := a.status
	var e *connect.Error
	switch {
	case a.reached:
		e, status = apierror.InternalError(), http.StatusInternalServerError
	case err == nil:
		e, status = apierror.New(connect.CodeInvalidArgument, apperror.InvalidArgument, "request: "+s.Message), http.StatusBadRequest
	default:
		e = apierror.New(connect.CodeInvalidArgument, apperror.InvalidArgument, "request: "+strings.TrimSpace(a.body.String()))
	}
	apierror.WriteREST(a.ResponseWriter, e, status)
}

// skipUnreadable calls next only if Vanguard could read the request: reading the body runs the transcoding, and if that fails, Vanguard has
// begun the response by then.
func skipUnreadable(next http.Handler) http.Handler {
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
			apierror.WriteREST(a, BadBody(err.Error()), http.StatusBadRequest)
			return
		}
		a.reached = true
		if r.URL.Path != a.procedure {
			internal := apierror.InternalError()
			apierror.WriteREST(a, internal, apierror.HTTPStatus(internal))
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
		next.ServeHTTP(w, r)
	})
}

var errNoAnswer = errors.New("the transcoder was not called through this package's handler")

package rest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
)

// file is the full name of the message that the methods stream.
const file = "google.api.HttpBody"

// method is a method that streams a file.
type method struct {
	procedure string
	request   protoreflect.MessageType
	handler   http.Handler
}

// NewDownloads returns a handler of the services' downloads, the methods that return google.api.HttpBody, which passes all other requests to
// next. Vanguard, which serves the other paths, would hold the whole file before it sends a byte.
//
//	mux.Handle("/v1/", rest.NewDownloads(services, restPaths))
//
// A download is a call of its method like any other: it goes through the Connect handler with all its interceptors, within the
// process. Each chunk is sent as it arrives. An error before the first chunk is sent as on the REST paths; a later one aborts the
// connection, so that a partial file is not taken for a complete one.
func NewDownloads(services []Service, next http.Handler) (http.Handler, error) {
	paths, handlers := make([]string, len(services)), map[string]http.Handler{}
	for i, s := range services {
		paths[i] = s.Path
		handlers[strings.Trim(s.Path, "/")] = s.Handler
	}
	table, err := NewTable(paths...)
	if err != nil {
		return nil, fmt.Errorf("build the paths of downloads: %w", err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		match, ok := table.Match(r.Method, r.URL.EscapedPath())
		if !ok || !match.Method.IsStreamingServer() || match.Method.Output().FullName() != file {
			next.ServeHTTP(w, r)
			return
		}
		service := string(match.Method.Parent().FullName())
		m := method{procedure: "/" + service + "/" + string(match.Method.Name()), handler: handlers[service]}
		var err error
		if m.request, err = protoregistry.GlobalTypes.FindMessageByName(match.Method.Input().FullName()); err != nil {
			internal := apierror.InternalError()
			apierror.WriteREST(w, internal, apierror.HTTPStatus(internal))
			return
		}
		m.serve(w, r, match)
	}), nil
}

// serve calls the method with the arguments of path and query.
func (m method) serve(w http.ResponseWriter, r *http.Request, match Match) {
	message, failure := m.read(r, match)
	if failure != nil {
		apierror.WriteREST(w, failure, apierror.HTTPStatus(failure))
		return
	}
	encoded, err := proto.Marshal(message)
	if err != nil {
		internal := apierror.InternalError()
		apierror.WriteREST(w, internal, apierror.HTTPStatus(internal))
		return
	}
	a := &downloadWriter{w: w, header: http.Header{}}
	m.handler.ServeHTTP(a, m.call(r, encoded))
	a.finish()
}

// call builds the request in Connect's streaming protocol.
func (m method) call(r *http.Request, message []byte) *http.Request {
	envelope := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))) //nolint:gosec // a query is far smaller
	envelope = append(envelope, message...)
	call := r.Clone(r.Context())
	call.Method, call.URL, call.RequestURI = http.MethodPost, &url.URL{Path: m.procedure}, m.procedure
	call.Body, call.ContentLength = io.NopCloser(bytes.NewReader(envelope)), int64(len(envelope))
	for name := range call.Header {
		for _, prefix := range []string{"Accept", "Connect-", "Content-", "Transfer-"} { // these concern the form of this request, not the call
			if strings.HasPrefix(name, prefix) {
				call.Header.Del(name)
			}
		}
	}
	call.Header.Set("Content-Type", "application/connect+proto")
	return call
}

// streamError returns the error at the end of a stream, or nil.
func streamError(end endOfStream) *connect.Error {
	if end.Error == nil {
		return nil
	}
	var code connect.Code
	if code.UnmarshalText([]byte(end.Error.Code)) != nil {
		return apierror.InternalError()
	}
	e := connect.NewError(code, errors.New(end.Error.Message))
	for _, d := range end.Error.Details {
		if detail, ok := d.detail(); ok {
			e.AddDetail(detail)
		}
	}
	const retry = "Retry-After"
	for name, values := range end.Metadata {
		if strings.EqualFold(name, retry) && len(values) > 0 {
			e.Meta().Set(retry, values[0])
		}
	}
	return e
}

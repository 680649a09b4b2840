// Package download serves the REST paths of methods that stream a file: those that answer with google.api.HttpBody. Vanguard, which
// serves the other paths, would hold the whole file before it sends a byte.
//
//	mux.Handle("/v1/", download.New(services, restPaths))
//
// A download is a call of its method like any other: it goes through the Connect handler with all its interceptors, within the
// process. Each chunk is sent as it comes. An error before the first is answered as the REST paths do; one after it cuts the
// connection, so that half a file does not look like a whole one.
package download

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/signalbox-dev/signalbox/internal/rpc/fail"
	"github.com/signalbox-dev/signalbox/internal/rpc/rest"
)

// file is the full name of what the methods stream.
const file = "google.api.HttpBody"

// method is one that streams a file.
type method struct {
	path      *regexp.Regexp
	fields    []string // of the path, in order
	procedure string
	request   protoreflect.MessageType
	handler   http.Handler
}

// New returns a handler of the services' downloads, that leaves everything else to next.
func New(services []rest.Service, next http.Handler) http.Handler {
	var methods []method
	for _, s := range services {
		found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(strings.Trim(s.Path, "/")))
		if err != nil {
			continue // it has no REST paths either
		}
		service, ok := found.(protoreflect.ServiceDescriptor)
		for i := range methodsOf(service, ok) {
			if m, ok := methodOf(s, service.Methods().Get(i)); ok {
				methods = append(methods, m)
			}
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			for _, m := range methods {
				if values := m.path.FindStringSubmatch(r.URL.EscapedPath()); values != nil {
					m.serve(w, r, values[1:])
					return
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}

func methodsOf(service protoreflect.ServiceDescriptor, ok bool) int {
	if !ok {
		return 0
	}
	return service.Methods().Len()
}

var variable = regexp.MustCompile(`\\\{([a-z_]+)\\\}`)

func methodOf(s rest.Service, d protoreflect.MethodDescriptor) (method, bool) {
	rule, _ := proto.GetExtension(d.Options(), annotations.E_Http).(*annotations.HttpRule)
	if !d.IsStreamingServer() || d.Output().FullName() != file || rule.GetGet() == "" {
		return method{}, false
	}
	request, err := protoregistry.GlobalTypes.FindMessageByName(d.Input().FullName())
	if err != nil {
		return method{}, false
	}
	m := method{procedure: s.Path + string(d.Name()), request: request, handler: s.Handler}
	plain := regexp.QuoteMeta(rule.GetGet())
	for _, found := range variable.FindAllStringSubmatch(plain, -1) {
		m.fields = append(m.fields, found[1])
	}
	m.path = regexp.MustCompile("^" + variable.ReplaceAllString(plain, "([^/]+)") + "$")
	return m, true
}

// serve calls the method with what path and query say.
func (m method) serve(w http.ResponseWriter, r *http.Request, values []string) {
	query := r.URL.Query()
	for i, value := range values {
		plain, err := url.PathUnescape(value)
		if err != nil {
			plain = value
		}
		query[m.fields[i]] = []string{plain}
	}
	message, problem := read(m.request, query)
	if problem != nil {
		fail.WriteREST(w, problem, fail.HTTPStatus(problem))
		return
	}
	body, err := proto.Marshal(message)
	if err != nil {
		internal := fail.Internal()
		fail.WriteREST(w, internal, fail.HTTPStatus(internal))
		return
	}
	a := &answer{w: w, header: http.Header{}}
	m.handler.ServeHTTP(a, m.call(r, body))
	a.finish()
}

// call is the request in Connect's streaming protocol.
func (m method) call(r *http.Request, message []byte) *http.Request {
	envelope := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))) //nolint:gosec // a query is far smaller
	envelope = append(envelope, message...)
	call := r.Clone(r.Context())
	call.Method, call.URL, call.RequestURI = http.MethodPost, &url.URL{Path: m.procedure}, m.procedure
	call.Body, call.ContentLength = io.NopCloser(bytes.NewReader(envelope)), int64(len(envelope))
	for name := range call.Header {
		for _, prefix := range []string{"Accept", "Connect-", "Content-", "Transfer-"} { // about the form of this request, not the call
			if strings.HasPrefix(name, prefix) {
				call.Header.Del(name)
			}
		}
	}
	call.Header.Set("Content-Type", "application/connect+proto")
	return call
}

// answered is an error that comes at the end of a stream, or nil.
func answered(end ending) *connect.Error {
	if end.Error == nil {
		return nil
	}
	var code connect.Code
	if code.UnmarshalText([]byte(end.Error.Code)) != nil {
		return fail.Internal()
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

package rest

import (
	"context"
	"fmt"
	"maps"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/api/httpbody"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
)

// call is one REST call, which the handler shares with the interceptor in the context.
type call struct {
	match     Match
	arguments proto.Message       // the fields of the request that are not in the JSON body
	file      http.ResponseWriter // receives the chunks of a file

	reached bool           // the interceptor was called
	begun   bool           // a chunk was sent
	problem *connect.Error // the error of the method
}

type callKey struct{}

// Interceptor completes the requests of REST calls, and takes their errors and files in the form that REST sends. It
// must be the outermost of a handler. It does not change other calls.
type Interceptor struct{}

var _ connect.Interceptor = Interceptor{}

// NewInterceptor returns the interceptor.
func NewInterceptor() Interceptor { return Interceptor{} }

// WrapUnary wraps a method that returns a message.
func (Interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		c, ok := ctx.Value(callKey{}).(*call)
		if !ok {
			return next(ctx, req)
		}
		err := c.complete(req.Any())
		var res connect.AnyResponse
		if err == nil {
			res, err = next(ctx, req)
		}
		return res, c.end(err)
	}
}

// WrapStreamingHandler wraps a method that streams a file.
func (Interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		c, ok := ctx.Value(callKey{}).(*call)
		if !ok {
			return next(ctx, conn)
		}
		return c.end(next(ctx, &file{conn, c}))
	}
}

// WrapStreamingClient does not change clients.
func (Interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// end records the result of the method.
func (c *call) end(err error) error {
	c.reached = true
	if err == nil {
		return nil
	}
	c.problem, _ = apierror.Error(err)
	return c.problem
}

// complete adds the arguments to the request, which has the fields of the body. A field that is unset, or has its
// type's zero value, counts as absent from the body, as everywhere in the JSON of Protobuf.
func (c *call) complete(request any) (err error) {
	message, ok := request.(proto.Message)
	if !ok {
		return fmt.Errorf("complete a request: %T is not a Protobuf message", request)
	}
	body, arguments := message.ProtoReflect(), c.arguments.ProtoReflect()
	for _, v := range c.match.Variables {
		if body.Has(v.Field) && !body.Get(v.Field).Equal(arguments.Get(v.Field)) {
			name := v.Field.JSONName()
			return invalid(name, "%q in the body differs from %q in the path: leave it out of the body", name, v.Value)
		}
	}
	arguments.Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if body.Has(field) && !c.match.inPath(field) {
			err = invalid(field.JSONName(), "parameter %q is in the body as well: give it once", field.JSONName())
		}
		return err == nil
	})
	if err == nil {
		proto.Merge(message, c.arguments)
	}
	return err
}

// file is the connection of a method that streams a file.
type file struct {
	connect.StreamingHandlerConn

	call *call
}

// Receive returns the request.
func (f *file) Receive(request any) error {
	if err := f.StreamingHandlerConn.Receive(request); err != nil {
		return err
	}
	return f.call.complete(request)
}

// Send sends one chunk.
func (f *file) Send(message any) error {
	chunk, ok := message.(*httpbody.HttpBody)
	if !ok {
		return fmt.Errorf("send a chunk of a file: %T is none", message)
	}
	w := f.call.file
	if !f.call.begun {
		f.call.begun = true
		maps.Copy(w.Header(), f.ResponseHeader())
		w.Header().Del("Connect-Accept-Encoding")
		w.Header().Set("Content-Type", chunk.GetContentType())
		w.Header().Set("X-Content-Type-Options", "nosniff")
	}
	if _, err := w.Write(chunk.GetData()); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

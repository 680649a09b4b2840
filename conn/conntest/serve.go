package conntest

import (
	"fmt"
	"strings"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // the SDK compresses what it sends
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// backend executes the calls that no fault has stopped.
type backend interface {
	serve(c call) error
	close()
}

// call is one call of a client.
type call struct {
	method string // as in "/package.Service/Method"
	stream grpc.ServerStream
	// The only message of the client, and its bytes. Both are nil if the method is unknown or takes a stream.
	request proto.Message
	body    *frame
}

// handle handles every call.
func (f *Frontend) handle(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	f.observations.recordArrival(method)
	answer := &delayedStream{ServerStream: stream, faults: &f.faults}
	err := f.execute(call{method: method, stream: answer})
	if err == nil {
		return nil
	}
	if !answer.begun {
		f.faults.delay(stream.Context())
	}
	return serviceerror.ToStatus(err).Err()
}

func (f *Frontend) execute(c call) error {
	if err := c.read(); err != nil {
		return err
	}
	if err := f.faults.awaitUnstalled(c.stream.Context(), c.method); err != nil {
		return err
	}
	if err := f.faults.errorFor(c.stream.Context(), c.method); err != nil {
		return err
	}
	if r, ok := c.request.(interface{ GetNamespace() string }); ok && r.GetNamespace() != "" &&
		!f.namespaces.has(r.GetNamespace()) {
		return serviceerror.NewNamespaceNotFound(r.GetNamespace())
	}
	defer f.observations.recordAdmission(c.request)()
	return f.backend.serve(c)
}

// read receives the request of a call that has exactly one.
func (c *call) read() error {
	kind := requestType(c.method)
	if kind == nil {
		return nil
	}
	c.body = &frame{}
	if err := c.stream.RecvMsg(c.body); err != nil {
		return err
	}
	c.request = kind.New().Interface()
	if err := proto.Unmarshal(c.body.data, c.request); err != nil {
		return status.Errorf(codes.Internal, "read the request: %v", err)
	}
	return nil
}

// requestType returns the type of a method's request, or nil for methods that are unknown or take a stream.
func requestType(method string) protoreflect.MessageType {
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return nil
	}
	descriptor, ok := found.(protoreflect.MethodDescriptor)
	if !ok || descriptor.IsStreamingClient() {
		return nil
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(descriptor.Input().FullName())
	if err != nil {
		return nil
	}
	return kind
}

// delayedStream is a stream that delays its messages by [Frontend.Slow].
type delayedStream struct {
	grpc.ServerStream

	faults *faults
	begun  bool
}

// SendMsg implements [grpc.ServerStream].
func (s *delayedStream) SendMsg(m any) error {
	s.begun = true
	s.faults.delay(s.Context())
	return s.ServerStream.SendMsg(m)
}

// frame is an encoded message.
type frame struct{ data []byte }

// rawCodec passes encoded messages through. It has the name of the codec that encoded them.
type rawCodec struct{}

// Name implements [google.golang.org/grpc/encoding.CodecV2].
func (rawCodec) Name() string { return "proto" }

// Marshal implements [google.golang.org/grpc/encoding.CodecV2].
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("send a %T as raw bytes", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(f.data)}, nil
}

// Unmarshal implements [google.golang.org/grpc/encoding.CodecV2].
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("receive raw bytes as a %T", v)
	}
	f.data = data.Materialize()
	return nil
}

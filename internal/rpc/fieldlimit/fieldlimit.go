// Package fieldlimit bounds the fields of all requests in one place, before any method runs. The cost of a request to
// the server and its database depends on its lists and texts, and the limit of its size alone allows a million
// elements.
//
//	connect.WithInterceptors(…, fieldlimit.NewInterceptor())
//
// Every list, map and text of a request has a row in the table; a test compares all requests of the API with it. A list
// that is a set loses its duplicates.
package fieldlimit

import (
	"context"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// Check returns an error that names the first field of a request over its limit. It removes duplicates from the lists
// that are sets.
func (t Table) Check(m proto.Message) error { return t.check(m.ProtoReflect(), "") }

func (t Table) check(m protoreflect.Message, prefix string) (err error) {
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := prefix + field.JSONName()
		limit, listed := t.Of(field)
		switch {
		case field.IsMap():
			err = t.checkMap(limit, name, v.Map(), field)
		case field.IsList():
			err = t.checkList(limit, name, m.Mutable(field).List(), field)
		case field.Message() != nil:
			err = t.check(v.Message(), name+".")
		case listed:
			err = checkText(limit, name, v)
		}
		return err == nil
	})
	return err
}

func (t Table) checkMap(limit Limit, name string, all protoreflect.Map,
	field protoreflect.FieldDescriptor) (err error) {
	if err := count(limit, name, all.Len()); err != nil {
		return err
	}
	all.Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
		if err = checkText(limit, name, key.Value()); err == nil && field.MapValue().Message() == nil {
			err = checkText(limit, name, v)
		} else if err == nil {
			err = t.check(v.Message(), name+".")
		}
		return err == nil
	})
	return err
}

func (t Table) checkList(limit Limit, name string, all protoreflect.List, field protoreflect.FieldDescriptor) error {
	if err := count(limit, name, all.Len()); err != nil {
		return err
	}
	seen := map[any]bool{}
	kept := 0
	for i := range all.Len() {
		v, at := all.Get(i), fmt.Sprintf("%s[%d]", name, i)
		if field.Message() != nil {
			if err := t.check(v.Message(), at+"."); err != nil {
				return err
			}
			continue
		}
		if err := checkText(limit, at, v); err != nil {
			return err
		}
		if limit.Set && !seen[v.Interface()] {
			seen[v.Interface()] = true
			all.Set(kept, v)
			kept++
		}
	}
	if limit.Set {
		all.Truncate(kept)
	}
	return nil
}

func count(limit Limit, name string, n int) error {
	if limit.Count == BySize || n <= limit.Count {
		return nil
	}
	return apperror.New(apperror.Invalid, apperror.InvalidArgument, "%s has %d elements: at most %d are allowed", name, n,
		limit.Count).
		WithField(name, "has %d elements, more than %d", n, limit.Count)
}

// checkText checks a text or bytes; values of other kinds have no limit.
func checkText(limit Limit, name string, v protoreflect.Value) error {
	n := 0
	switch v := v.Interface().(type) {
	case string:
		n = len(v)
	case []byte:
		n = len(v)
	}
	if limit.Bytes == BySize || n <= limit.Bytes {
		return nil
	}
	return apperror.New(apperror.Invalid, apperror.InvalidArgument, "%s has %d bytes: at most %d are allowed", name, n,
		limit.Bytes).
		WithField(name, "has %d bytes, more than %d", n, limit.Bytes)
}

// Interceptor checks the fields of requests.
type Interceptor struct{ table Table }

var _ connect.Interceptor = Interceptor{}

// NewInterceptor returns the interceptor.
func NewInterceptor() Interceptor { return Interceptor{NewTable()} }

// WrapUnary checks the request of a unary call.
func (i Interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if err := i.check(req.Any()); err != nil {
			return nil, err
		}
		return next(ctx, req)
	}
}

// WrapStreamingHandler checks the request of a stream once it was read.
func (i Interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return next(ctx, stream{conn, i})
	}
}

// WrapStreamingClient does not change clients.
func (Interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

type stream struct {
	connect.StreamingHandlerConn

	fields Interceptor
}

// Receive reads a request.
func (s stream) Receive(m any) error {
	if err := s.StreamingHandlerConn.Receive(m); err != nil {
		return err
	}
	return s.fields.check(m)
}

func (i Interceptor) check(m any) error {
	if msg, ok := m.(proto.Message); ok {
		return i.table.Check(msg)
	}
	return nil
}

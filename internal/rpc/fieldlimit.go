package rpc

import (
	"context"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// checkRequest returns an error that names the first field of a request over its limit. It removes duplicates from the
// lists that are sets.
func (t fieldTable) checkRequest(m proto.Message) error { return t.check(m.ProtoReflect(), "") }

func (t fieldTable) check(m protoreflect.Message, prefix string) (err error) {
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := prefix + field.JSONName()
		limit, listed := t.of(field)
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

func (t fieldTable) checkMap(limit fieldLimit, name string, all protoreflect.Map,
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

func (t fieldTable) checkList(limit fieldLimit, name string, all protoreflect.List,
	field protoreflect.FieldDescriptor) error {
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

func count(limit fieldLimit, name string, n int) error {
	if limit.Count == bySize || n <= limit.Count {
		return nil
	}
	return apperror.New(apperror.Invalid, apperror.InvalidArgument, "%s has %d elements: at most %d are allowed", name, n,
		limit.Count).
		WithField(name, "has %d elements, more than %d", n, limit.Count)
}

// checkText checks a text or bytes; values of other kinds have no limit.
func checkText(limit fieldLimit, name string, v protoreflect.Value) error {
	n := 0
	switch v := v.Interface().(type) {
	case string:
		n = len(v)
	case []byte:
		n = len(v)
	}
	if limit.Bytes == bySize || n <= limit.Bytes {
		return nil
	}
	return apperror.New(apperror.Invalid, apperror.InvalidArgument, "%s has %d bytes: at most %d are allowed", name, n,
		limit.Bytes).
		WithField(name, "has %d bytes, more than %d", n, limit.Bytes)
}

// fieldInterceptor checks the fields of all requests in one place, before any method runs. The cost of a request to the
// server and its database depends on its lists and texts, and the limit of its size alone allows a million elements.
type fieldInterceptor struct{ table fieldTable }

var _ connect.Interceptor = fieldInterceptor{}

// WrapUnary checks the request of a unary call.
func (i fieldInterceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if err := i.check(req.Any()); err != nil {
			return nil, err
		}
		return next(ctx, req)
	}
}

// WrapStreamingHandler checks the request of a stream once it was read.
func (i fieldInterceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return next(ctx, checkedStream{conn, i})
	}
}

// WrapStreamingClient does not change clients.
func (fieldInterceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

type checkedStream struct {
	connect.StreamingHandlerConn

	fields fieldInterceptor
}

// Receive reads a request.
func (s checkedStream) Receive(m any) error {
	if err := s.StreamingHandlerConn.Receive(m); err != nil {
		return err
	}
	return s.fields.check(m)
}

func (i fieldInterceptor) check(m any) error {
	if msg, ok := m.(proto.Message); ok {
		return i.table.checkRequest(msg)
	}
	return nil
}

package permission

import (
	"context"
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
)

// Denial is a denied call.
type Denial struct {
	// Method is "service/method" of the API.
	Method string
	// Project and Role are the missing permission; Project is the caller's text.
	Project string
	Role    auth.Role
	// Changes reports whether the call would have changed data.
	Changes bool
	Err     error
}

// InterceptorOptions configure an Interceptor.
type InterceptorOptions struct {
	// CheckValid returns an error if the token or the session of the actor is no longer valid, which ends open streams. It
	// is nil if there are no tokens.
	CheckValid func(ctx context.Context, a auth.Actor) error
	// Denied, if set, is called for each denied call.
	Denied func(ctx context.Context, d Denial)
}

// Interceptor enforces the table.
type Interceptor struct {
	opts    InterceptorOptions
	rules   map[string]Rule
	streams *streams
}

var _ connect.Interceptor = (*Interceptor)(nil)

// NewInterceptor returns the interceptor.
func NewInterceptor(opts InterceptorOptions) *Interceptor {
	i := &Interceptor{opts: opts, rules: map[string]Rule{}, streams: newStreams()}
	for _, r := range Table() {
		i.rules[r.Procedure] = r
	}
	return i
}

// WrapUnary checks the permission before a unary call.
func (i *Interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if _, err := i.check(ctx, req.Spec(), req.Any()); err != nil {
			return nil, err
		}
		return next(ctx, req)
	}
}

// WrapStreamingHandler checks the permission and the number of open streams after the request of a stream was read, and
// the token again before each message.
func (i *Interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		s := &stream{StreamingHandlerConn: conn, ctx: ctx, guard: i, leave: func() {}}
		defer func() { s.leave() }()
		return next(ctx, s)
	}
}

// WrapStreamingClient does not change clients.
func (i *Interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// stream is a server stream that checks the caller's permission.
type stream struct {
	connect.StreamingHandlerConn

	ctx   context.Context //nolint:containedctx // the stream's context, which its methods do not receive
	guard *Interceptor
	leave func() // ends the count of the stream
}

// Receive reads the request of the stream.
func (s *stream) Receive(m any) error {
	if err := s.StreamingHandlerConn.Receive(m); err != nil {
		return err
	}
	project, err := s.guard.check(s.ctx, s.Spec(), m)
	if err != nil {
		return err
	}
	leave, err := s.guard.streams.enter(s.ctx, s.Spec().Procedure, project)
	if err != nil {
		return err
	}
	s.leave = leave
	return nil
}

// Send sends a message.
func (s *stream) Send(m any) error {
	if a, _ := auth.ActorFrom(s.ctx); a.ID != "" && s.guard.opts.CheckValid != nil {
		if err := s.guard.opts.CheckValid(s.ctx, a); err != nil {
			return err
		}
	}
	return s.StreamingHandlerConn.Send(m)
}

var errNoRule = errors.New("the method has no row in the table of permissions")

// check returns the project of a call, and an error if the actor of ctx may not call the method with this message.
func (i *Interceptor) check(ctx context.Context, spec connect.Spec, m any) (project string, err error) {
	rule, ok := i.rules[spec.Procedure]
	msg, isMessage := m.(proto.Message)
	if !ok || !isMessage {
		return "", errNoRule // an internal error
	}
	d := Denial{Method: rule.Procedure[1:], Role: rule.Role, Changes: changes(spec)}
	d.Project, d.Role = rule.needs(msg)
	if d.Project == "" {
		return "", nil
	}
	if d.Err = auth.Require(ctx, d.Project, d.Role); d.Err == nil {
		also := AlsoRequired(rule.Procedure)
		if also == "" {
			return d.Project, nil
		}
		if d.Role, d.Err = also, auth.Require(ctx, d.Project, also); d.Err == nil {
			return d.Project, nil
		}
	}
	if i.opts.Denied != nil {
		i.opts.Denied(ctx, d)
	}
	return "", d.Err
}

// needs returns the project and the role that a call requires; both are empty if it requires none.
func (r Rule) needs(m proto.Message) (project string, role auth.Role) {
	const all = "-"
	switch r.Scope {
	case Project:
		return message.ProjectOf(text(m, "project")), r.Role
	case Name:
		return message.ProjectOf(text(m, "name")), r.Role
	case ProjectOrAll:
		if name := text(m, "project"); name != all {
			return message.ProjectOf(name), r.Role
		}
		return auth.Everywhere, auth.Admin
	case Everywhere:
		return auth.Everywhere, r.Role
	case Visible:
		return text(m, "project"), auth.Viewer
	case Nowhere:
	}
	return "", ""
}

// text returns a text field; empty if the message has none with this name.
func text(m proto.Message, name protoreflect.Name) string {
	field := m.ProtoReflect().Descriptor().Fields().ByName(name)
	if field == nil || field.Kind() != protoreflect.StringKind {
		return ""
	}
	return m.ProtoReflect().Get(field).String()
}

// changes reports whether a method changes data: a unary method that the protos do not mark as free of side effects.
func changes(spec connect.Spec) bool {
	method, ok := spec.Schema.(protoreflect.MethodDescriptor)
	if !ok || spec.StreamType != connect.StreamTypeUnary {
		return false
	}
	options, _ := method.Options().(*descriptorpb.MethodOptions)
	return options.GetIdempotencyLevel() == descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN
}

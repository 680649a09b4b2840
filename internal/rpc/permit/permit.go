package permit

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

// Denial is a call that was refused.
type Denial struct {
	// Method is "service/method"; one of the API's.
	Method string
	// Project and Role are what was missing; Project is as the caller wrote it.
	Project string
	Role    auth.Role
	// Changes tells whether the call would have changed something.
	Changes bool
	Err     error
}

// Options say what else is asked and told.
type Options struct {
	// Standing returns an error when the token of this ID is valid no more; a stream that goes on is ended by it. nil: there are no tokens.
	Standing func(ctx context.Context, id string) error
	// Denied is told of what was refused; nil: nobody.
	Denied func(ctx context.Context, d Denial)
}

// Interceptor enforces the table.
type Interceptor struct {
	opts  Options
	rules map[string]Rule
}

var _ connect.Interceptor = (*Interceptor)(nil)

// New returns the interceptor.
func New(opts Options) *Interceptor {
	i := &Interceptor{opts: opts, rules: map[string]Rule{}}
	for _, r := range Table() {
		i.rules[r.Procedure] = r
	}
	return i
}

// WrapUnary asks before a unary call.
func (i *Interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if err := i.check(ctx, req.Spec(), req.Any()); err != nil {
			return nil, err
		}
		return next(ctx, req)
	}
}

// WrapStreamingHandler asks when the request of a stream has been read, and again, of the token alone, before each message.
func (i *Interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return next(ctx, &stream{StreamingHandlerConn: conn, ctx: ctx, guard: i})
	}
}

// WrapStreamingClient leaves clients alone.
func (i *Interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// stream is a stream of the API whose reader is asked for its role.
type stream struct {
	connect.StreamingHandlerConn

	ctx   context.Context //nolint:containedctx // it is the stream's own, which its methods do not take
	guard *Interceptor
}

// Receive reads a request.
func (s *stream) Receive(m any) error {
	if err := s.StreamingHandlerConn.Receive(m); err != nil {
		return err
	}
	return s.guard.check(s.ctx, s.Spec(), m)
}

// Send answers.
func (s *stream) Send(m any) error {
	if a, _ := auth.ActorFrom(s.ctx); a.ID != "" && s.guard.opts.Standing != nil {
		if err := s.guard.opts.Standing(s.ctx, a.ID); err != nil {
			return err
		}
	}
	return s.StreamingHandlerConn.Send(m)
}

var errNoRule = errors.New("the method has no row in the table of permissions")

// check returns an error where the actor of ctx may not call the method with this message.
func (i *Interceptor) check(ctx context.Context, spec connect.Spec, m any) error {
	rule, ok := i.rules[spec.Procedure]
	msg, isMessage := m.(proto.Message)
	if !ok || !isMessage {
		return errNoRule // an internal error: it is ours
	}
	d := Denial{Method: rule.Procedure[1:], Role: rule.Role, Changes: changes(spec)}
	d.Project, d.Role = rule.needs(msg)
	if d.Project == "" {
		return nil
	}
	if d.Err = auth.Require(ctx, d.Project, d.Role); d.Err == nil {
		return nil
	}
	if i.opts.Denied != nil {
		i.opts.Denied(ctx, d)
	}
	return d.Err
}

// needs returns where which role is needed; no project is nowhere.
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

// text returns a field of text; empty where the message has none of this name.
func text(m proto.Message, name protoreflect.Name) string {
	field := m.ProtoReflect().Descriptor().Fields().ByName(name)
	if field == nil || field.Kind() != protoreflect.StringKind {
		return ""
	}
	return m.ProtoReflect().Get(field).String()
}

// changes tells whether a method changes something: those that do not say so in the protos, or answer with a stream.
func changes(spec connect.Spec) bool {
	method, ok := spec.Schema.(protoreflect.MethodDescriptor)
	if !ok || spec.StreamType != connect.StreamTypeUnary {
		return false
	}
	options, _ := method.Options().(*descriptorpb.MethodOptions)
	return options.GetIdempotencyLevel() == descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN
}

package invocation

import (
	"context"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

// method is a method of a client of the API.
type method[Q, R any] = func(context.Context, *connect.Request[Q]) (*connect.Response[R], error)

// Send calls a method, bounded by --timeout. It returns the error of the call as it is, for callers that add a hint to
// it.
func Send[Q, R any](ctx context.Context, s *Invocation, call method[Q, R], request *Q) (*R, error) {
	ctx, cancel := s.Deadline(ctx)
	defer cancel()

	response, err := call(ctx, connect.NewRequest(request))
	if err != nil {
		return nil, err
	}
	return response.Msg, nil
}

// Call is Send with an error that says what was being done, for example "show run %q". A caller may read the nil
// response beside an error by its getters, which return zero values.
func Call[Q, R any](ctx context.Context, s *Invocation, call method[Q, R], request *Q, what string,
	args ...any) (*R, error) {
	response, err := Send(ctx, s, call, request)
	return response, s.Failed(err, what, args...)
}

// Card prints a message: for programs as it is, for people as a card of fields.
func (s *Invocation) Card(message proto.Message, fields []output.Field) error {
	if s.Format().Structured() {
		return output.Message(s.Out, s.Format(), message)
	}
	return output.Card(s.Out, s.Style(), fields)
}

// Package handler answers the methods of the API: it translates between messages and the domain's services and
// decides nothing else. Errors go out as they come; package rpc maps them.
//
//	path, h := signalboxv1connect.NewRunServiceHandler(handler.NewRuns(runs, projects, handler.RunOptions{…}))
package handler

import (
	"context"
	"encoding/json"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/rpc/page"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Sizes of pages.
const (
	pageDefault  = 50
	pageMax      = 500
	stepsDefault = 200
	stepsMax     = 1000
)

// ProjectFinder finds projects.
type ProjectFinder interface {
	Get(ctx context.Context, name string) (project.Project, error)
}

// projectOf gives the empty name its meaning.
func projectOf(name string) string {
	if name == "" {
		return project.Default
	}
	return name
}

func actorName(ctx context.Context) string {
	actor, _ := auth.ActorFrom(ctx)
	return actor.Name
}

// pageRequest is what all list requests have.
type pageRequest interface {
	proto.Message
	GetPageSize() int32
	GetPageToken() string
}

// listPage answers one page of a list: it asks for one item more than fits, and makes the token of the last item that
// is shown when there is one.
func listPage[C, T any](
	req pageRequest, standard, most int, list func(after *C, limit int) ([]T, error), cursor func(T) C,
) ([]T, string, error) {
	size, err := pageSize(req.GetPageSize(), standard, most)
	if err != nil {
		return nil, "", err
	}
	key, err := page.Key(req)
	if err != nil {
		return nil, "", err
	}
	after, err := page.Decode[C](req.GetPageToken(), key)
	if err != nil {
		return nil, "", err
	}
	items, err := list(after, size+1)
	if err != nil {
		return nil, "", err
	}
	if len(items) <= size {
		return items, "", nil
	}
	items = items[:size]
	token, err := page.Encode(cursor(items[size-1]), key)
	return items, token, err
}

func pageSize(asked int32, standard, most int) (int, error) {
	switch {
	case asked == 0:
		return standard, nil
	case asked < 0 || int(asked) > most:
		return 0, fault.New(fault.Invalid, fault.InvalidArgument, "page size %d: give 1 to %d, or 0 for %d", asked, most, standard).
			WithField("pageSize", "must be between 0 and %d", most)
	}
	return int(asked), nil
}

// inputOf returns nil for a value that was not sent, which is not the JSON null.
func inputOf(v *signalboxv1.JsonValue) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	if !json.Valid([]byte(v.GetJson())) {
		return nil, fault.New(fault.Invalid, fault.InvalidArgument, "the input is not valid JSON").
			WithField("input", "is not valid JSON")
	}
	return json.RawMessage(v.GetJson()), nil
}

func jsonValue(raw json.RawMessage) *signalboxv1.JsonValue {
	if raw == nil {
		return nil
	}
	return &signalboxv1.JsonValue{Json: string(raw)}
}

// timestamp cuts to microseconds, which is what stores keep: an answer must not differ from the next one.
func timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t.Truncate(time.Microsecond))
}

// timeOf returns the zero time for a field that is not set. Times that RFC 3339 cannot name are refused, since stores cannot
// keep them either.
func timeOf(field string, t *timestamppb.Timestamp) (time.Time, error) {
	if t == nil {
		return time.Time{}, nil
	}
	if err := t.CheckValid(); err != nil {
		return time.Time{}, fault.New(fault.Invalid, fault.InvalidArgument, "%s: %v", field, err).WithField(field, "is not a time")
	}
	return t.AsTime(), nil
}

func problem(p *run.Problem) *signalboxv1.Problem {
	if p == nil {
		return nil
	}
	return &signalboxv1.Problem{
		Type: p.Type, Status: int32(p.Status), Title: p.Title, Detail: p.Detail, Instance: p.Instance, //nolint:gosec // statuses are three digits
	}
}

// reply wraps a response unless there is an error.
func reply[T any](message *T, err error) (*connect.Response[T], error) {
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(message), nil
}

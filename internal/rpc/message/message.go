// Package message is what the messages of the API have in common: how times, durations and JSON are written in them and read from
// them.
//
//	m.CreateTime = message.Timestamp(row.CreatedAt)
//	since, err := message.Time("since", m.GetSince())
//	return message.Reply(&signalboxv1.GetRunResponse{…}, err)
package message

import (
	"context"
	"encoding/json"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/project"
)

// ProjectFinder finds projects.
type ProjectFinder interface {
	Get(ctx context.Context, name string) (project.Project, error)
}

// ProjectOf gives the empty name its meaning.
func ProjectOf(name string) string {
	if name == "" {
		return project.Default
	}
	return name
}

// JSON is a value as it is; nil stays nil.
func JSON(raw json.RawMessage) *signalboxv1.JsonValue {
	if raw == nil {
		return nil
	}
	return &signalboxv1.JsonValue{Json: string(raw)}
}

// Timestamp cuts to microseconds, which is what stores keep: an answer must not differ from the next one.
func Timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t.Truncate(time.Microsecond))
}

// Time returns the zero time for a field that is not set. Times that RFC 3339 cannot name are refused, since stores cannot
// keep them either.
func Time(field string, t *timestamppb.Timestamp) (time.Time, error) {
	if t == nil {
		return time.Time{}, nil
	}
	if err := t.CheckValid(); err != nil {
		return time.Time{}, fault.New(fault.Invalid, fault.InvalidArgument, "%s: %v", field, err).WithField(field, "is not a time")
	}
	return t.AsTime(), nil
}

// Duration cuts to milliseconds, which is what people read.
func Duration(d time.Duration) *durationpb.Duration {
	return durationpb.New(d.Truncate(time.Millisecond))
}

// Reply wraps a response unless there is an error.
func Reply[T any](message *T, err error) (*connect.Response[T], error) {
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(message), nil
}

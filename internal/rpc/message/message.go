// Package message has the conversions shared by the API's messages: runs, problems, times, durations and JSON.
//
//	p := &signalboxv1.Project{CreateTime: message.Timestamp(time.Now())}
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
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/project"
)

// ProjectFinder finds projects.
type ProjectFinder interface {
	Get(ctx context.Context, name string) (project.Project, error)
}

// ProjectOf returns the default project for an empty name.
func ProjectOf(name string) string {
	if name == "" {
		return project.Default
	}
	return name
}

// JSON wraps a value unchanged; nil stays nil.
func JSON(raw json.RawMessage) *signalboxv1.JsonValue {
	if raw == nil {
		return nil
	}
	return &signalboxv1.JsonValue{Json: string(raw)}
}

// Timestamp truncates to microseconds, the precision of the stores, so that repeated responses are equal.
func Timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t.Truncate(time.Microsecond))
}

// Time returns the zero time for an unset field. Times outside of RFC 3339 are rejected, because stores cannot
// represent them either.
func Time(field string, t *timestamppb.Timestamp) (time.Time, error) {
	if t == nil {
		return time.Time{}, nil
	}
	if err := t.CheckValid(); err != nil {
		return time.Time{}, apperror.New(apperror.Invalid, apperror.InvalidArgument, "%s: %v", field, err).
			WithField(field, "is not a time")
	}
	return t.AsTime(), nil
}

// Duration truncates to milliseconds, for readability.
func Duration(d time.Duration) *durationpb.Duration {
	return durationpb.New(d.Truncate(time.Millisecond))
}

// Reply wraps a response, or returns the error.
func Reply[T any](message *T, err error) (*connect.Response[T], error) {
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(message), nil
}

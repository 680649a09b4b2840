// Package handler answers the methods of the API: it translates between messages and the domain's services and
// decides nothing else. Errors go out as they come; package rpc maps them.
//
//	path, h := signalboxv1connect.NewRunServiceHandler(handler.NewRuns(runs, projects, handler.RunOptions{…}))
package handler

import (
	"context"
	"encoding/json"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Sizes of pages of steps.
const (
	stepsDefault = 200
	stepsMost    = 1000
)

func actorName(ctx context.Context) string {
	actor, _ := auth.ActorFrom(ctx)
	return actor.Name
}

// jsonOf returns nil for a value that was not sent, which is not the JSON null.
func jsonOf(field string, v *signalboxv1.JsonValue) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	if !json.Valid([]byte(v.GetJson())) {
		return nil, fault.New(fault.Invalid, fault.InvalidArgument, "the %s is not valid JSON", field).
			WithField(field, "is not valid JSON")
	}
	return json.RawMessage(v.GetJson()), nil
}

func problem(p *run.Problem) *signalboxv1.Problem {
	if p == nil {
		return nil
	}
	return &signalboxv1.Problem{
		Type: p.Type, Status: int32(p.Status), Title: p.Title, Detail: p.Detail, Instance: p.Instance, //nolint:gosec // statuses are three digits
	}
}

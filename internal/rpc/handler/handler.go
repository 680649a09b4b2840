// Package handler implements the methods of the API: it translates between messages and the domain's services and
// contains no other logic. Errors are returned unchanged; package rpc maps them.
//
//	path, h := signalboxv1connect.NewRunServiceHandler(handler.NewRuns(runs, projects, handler.RunOptions{…}))
package handler

import (
	"context"
	"encoding/json"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
)

// Page sizes of steps.
const (
	stepsDefault = 200
	stepsMost    = 1000
)

func actorName(ctx context.Context) string {
	actor, _ := auth.ActorFrom(ctx)
	return actor.Name
}

// jsonOf returns nil for an absent value, which differs from the JSON null.
func jsonOf(field string, v *signalboxv1.JsonValue) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	if !json.Valid([]byte(v.GetJson())) {
		return nil, apperror.New(apperror.Invalid, apperror.InvalidArgument, "the %s is not valid JSON", field).
			WithField(field, "is not valid JSON")
	}
	return json.RawMessage(v.GetJson()), nil
}

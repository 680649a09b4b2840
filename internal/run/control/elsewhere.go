package control

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/home"
)

// Whereabouts is what is known of where the runs are.
type Whereabouts interface {
	// Place asks Temporal where it is, now.
	Place(ctx context.Context) (run.Place, error)
	// RunsHome returns what was recorded as the place where the runs are.
	RunsHome(ctx context.Context) (run.Home, error)
	// WorkerPlaces returns where the live workers are connected; those that have never been are left out.
	WorkerPlaces(ctx context.Context) ([]run.Place, error)
}

// Locate has the service find out whether a run that Temporal does not know may be in another one. Without it there is one
// Temporal only. It is called before the service is used.
func (s *Service) Locate(w Whereabouts) { s.whereabouts = w }

// view finds out what the Temporal that did not know a run is to the runs.
func (s *Service) view(ctx context.Context) (home.View, error) {
	if s.whereabouts == nil {
		return home.View{}, nil
	}
	return home.Look(ctx, s.whereabouts, s.whereabouts)
}

// checkUnknown returns the fault of a control that is refused for a run that Temporal does not know.
func checkUnknown(c Control, r run.Run, v home.View) error {
	switch a := Unknown(c, v.Standing()); {
	case a.Effect != Refused:
		return nil
	case a.Reason == fault.RunElsewhere:
		return fault.New(fault.Refused, a.Reason, "run %s is %s: it may go on there, so nothing was changed. %s; to end it here alone, terminate it",
			r.ID, v.Because(), remedy(c, v)).
			WithFact("connected", home.Named(v.Here)).WithFact("home", home.Named(v.Other()))
	default:
		return refusal(c, r, a.Reason)
	}
}

func remedy(c Control, v home.View) string {
	if v.Standing() == home.Elsewhere {
		return fmt.Sprintf("Point temporal.address and temporal.namespace back there and %s it again", verb(c))
	}
	return fmt.Sprintf("Make temporal.address and temporal.namespace the same in all processes and %s it again; workers that stopped count for a few seconds more",
		verb(c))
}

// unreached adds to how a run was terminated that its execution, wherever that is, was not.
func unreached(problem *run.Problem, v home.View) *run.Problem {
	told := *problem
	told.Title += " in the table alone"
	told.Detail += " (the execution was not reached: it was " + v.Because() + ", where it may go on)"
	return &told
}

// unreachedDetail is the same for the audit log.
func unreachedDetail(v home.View) json.RawMessage {
	text, _ := json.Marshal(map[string]any{ //nolint:errchkjson // texts and truths always encode
		"executionReached": false, "connected": home.Named(v.Here), "home": home.Named(v.Other()),
	})
	return text
}

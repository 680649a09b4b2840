package platform

import (
	"context"
	"fmt"
	"os"
	"strings"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
)

// Controls is what docs/reference/controls.md tells users: by state and control the cell, as it is written there.
type Controls map[string]map[string]string

// ReadControls reads the page; tests run in a folder two below the repository's.
func ReadControls(t T) Controls {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/controls.md")
	if err != nil {
		t.Fatalf("read the controls: %v", err)
	}
	table := Controls{}
	var names []string
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " `")
		}
		if names == nil {
			names = cells[1:]
			continue
		}
		row := map[string]string{}
		for i, name := range names {
			row[name] = cells[i+1]
		}
		table[cells[0]] = row
	}
	return table
}

// Control does one of a run's controls with a reason, and returns the run as it was answered: for a replay, the new one.
func (s *Server) Control(ctx context.Context, control, id, reason string) (*signalboxv1.Run, error) {
	switch control {
	case "cancel":
		return answered(s.Runs.CancelRun(ctx, connect.NewRequest(&signalboxv1.CancelRunRequest{Project: DefaultProject, Id: id, Reason: reason})))
	case "terminate":
		return answered(s.Runs.TerminateRun(ctx, connect.NewRequest(&signalboxv1.TerminateRunRequest{Project: DefaultProject, Id: id, Reason: reason})))
	case "pause":
		return answered(s.Runs.PauseRun(ctx, connect.NewRequest(&signalboxv1.PauseRunRequest{Project: DefaultProject, Id: id, Reason: reason})))
	case "unpause":
		return answered(s.Runs.UnpauseRun(ctx, connect.NewRequest(&signalboxv1.UnpauseRunRequest{Project: DefaultProject, Id: id, Reason: reason})))
	case "replay":
		return answered(s.Runs.ReplayRun(ctx, connect.NewRequest(&signalboxv1.ReplayRunRequest{Project: DefaultProject, Id: id, Reason: reason})))
	default:
		return nil, fmt.Errorf("there is no control %q of a run", control)
	}
}

// answered takes the run out of an answer.
func answered[M any, P interface {
	*M
	GetRun() *signalboxv1.Run
}](res *connect.Response[M], err error) (*signalboxv1.Run, error) {
	if err != nil {
		return nil, err
	}
	return P(res.Msg).GetRun(), nil
}

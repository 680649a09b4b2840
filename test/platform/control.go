package platform

import (
	"context"
	"fmt"
	"os"
	"strings"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
)

// Controls is the table of docs/reference/controls.md: the text of each cell, by state and control.
type Controls map[string]map[string]string

// ReadControls reads the table. Tests run two folders below the repository's root.
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

// Control calls one control of a run with a reason, and returns the run of the response: for a replay, the new run.
func (s *Server) Control(ctx context.Context, control, id, reason string) (*signalboxv1.Run, error) {
	switch control {
	case "cancel":
		return runOf(s.Runs.CancelRun(ctx,
			connect.NewRequest(&signalboxv1.CancelRunRequest{Project: DefaultProject, Id: id, Reason: reason})))
	case "terminate":
		return runOf(s.Runs.TerminateRun(ctx,
			connect.NewRequest(&signalboxv1.TerminateRunRequest{Project: DefaultProject, Id: id, Reason: reason})))
	case "pause":
		return runOf(s.Runs.PauseRun(ctx,
			connect.NewRequest(&signalboxv1.PauseRunRequest{Project: DefaultProject, Id: id, Reason: reason})))
	case "unpause":
		return runOf(s.Runs.UnpauseRun(ctx,
			connect.NewRequest(&signalboxv1.UnpauseRunRequest{Project: DefaultProject, Id: id, Reason: reason})))
	case "replay":
		return runOf(s.Runs.ReplayRun(ctx,
			connect.NewRequest(&signalboxv1.ReplayRunRequest{Project: DefaultProject, Id: id, Reason: reason})))
	default:
		return nil, fmt.Errorf("unknown control %q", control)
	}
}

// runOf returns the run of a response.
func runOf[M any, P interface {
	*M
	GetRun() *signalboxv1.Run
}](res *connect.Response[M], err error) (*signalboxv1.Run, error) {
	if err != nil {
		return nil, err
	}
	return P(res.Msg).GetRun(), nil
}

// Package batchcmd is the noun "batch": apply one action to many runs, and list the outcomes.
//
//	root.AddCommand(batchcmd.New(s))
package batchcmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/cli/runcmd"
	"github.com/signalbox-dev/signalbox/internal/cli/session"
)

// completed is the API's status of a batch with no items left; paused of one that an operator has stopped.
const (
	completed = "completed"
	paused    = "paused"
)

// New returns the noun with its verbs.
func New(s *session.Session) *cobra.Command {
	noun := session.Noun("batch", "Cancel, terminate or replay many runs as one job", "")
	noun.AddCommand(startCommand(s), listCommand(s), showCommand(s), pauseCommand(s), unpauseCommand(s), retryCommand(s))
	return noun
}

func get(ctx context.Context, s *session.Session, id string) (*signalboxv1.Batch, error) {
	request := &signalboxv1.GetBatchRequest{Project: s.Project(), Id: id}
	response, err := session.Call(ctx, s, s.Batches().GetBatch, request, "show batch %q", id)
	if err != nil {
		return nil, err
	}
	return response.GetBatch(), nil
}

func show(s *session.Session, b *signalboxv1.Batch) error {
	return s.Card(b, []output.Field{
		{Name: "id", Value: b.GetId()},
		{Name: "action", Value: action(b)},
		{Name: "status", Value: b.GetStatus()},
		{Name: "waiting", Value: b.GetWaiting()},
		{Name: "runs", Value: counts(b)},
		{Name: "filter", Value: filterLine(b.GetFilter())},
		{Name: "reason", Value: b.GetReason()},
		{Name: "rate", Value: fmt.Sprintf("%g/s", b.GetRate())},
		{Name: "actor", Value: b.GetActor()},
		{Name: "request", Value: b.GetRequestId()},
		{Name: "created", Value: output.Moment(b.GetCreateTime())},
		{Name: "ended", Value: output.Moment(b.GetEndTime())},
	})
}

func action(b *signalboxv1.Batch) string {
	return strings.TrimSpace(b.GetAction() + " " + b.GetVersion())
}

// counts lists a batch's counts of items by outcome, without those that are 0.
func counts(b *signalboxv1.Batch) string {
	var parts []string
	for _, part := range []struct {
		n    int64
		word string
	}{{b.GetSucceeded(), "succeeded"}, {b.GetRefused(), "refused"}, {b.GetFailed(), "failed"}, {b.GetPending(), "pending"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.word))
		}
	}
	line := fmt.Sprint(b.GetTotal())
	if len(parts) > 0 {
		line += ": " + strings.Join(parts, ", ")
	}
	return line
}

// filterLine is the filter in the words of the flags; empty for a batch of run IDs.
func filterLine(f *signalboxv1.BatchFilter) string {
	if f == nil {
		return ""
	}
	return runcmd.FilterLine(f, "")
}

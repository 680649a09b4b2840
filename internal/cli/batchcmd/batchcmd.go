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
	"github.com/signalbox-dev/signalbox/internal/cli/invocation"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
	"github.com/signalbox-dev/signalbox/internal/cli/runcmd"
)

// completed is the API's status of a batch with no items left; paused of one that an operator has stopped.
const (
	completed = "completed"
	paused    = "paused"
)

// New returns the noun with its verbs.
func New(s *invocation.Invocation) *cobra.Command {
	noun := invocation.Noun("batch", "Cancel, terminate or replay many runs as one job", "")
	noun.AddCommand(startCommand(s), listCommand(s), showCommand(s), pauseCommand(s), unpauseCommand(s), retryCommand(s))
	return noun
}

func get(ctx context.Context, s *invocation.Invocation, id string) (*signalboxv1.Batch, error) {
	request := &signalboxv1.GetBatchRequest{Project: s.Project(), Id: id}
	response, err := invocation.Call(ctx, s, s.Batches().GetBatch, request, "show batch %q", id)
	if err != nil {
		return nil, err
	}
	return response.GetBatch(), nil
}

func show(s *invocation.Invocation, b *signalboxv1.Batch) error {
	return s.Card(b, []output.Field{
		{Name: "id", Value: b.GetId()},
		{Name: "action", Value: action(b)},
		{Name: "status", Value: b.GetStatus()},
		{Name: "waiting", Value: b.GetWaiting()},
		{Name: "runs", Value: counts(b)},
		{Name: "outcomes", Value: outcomeCounts(b)},
		{Name: "filter", Value: filterLine(b.GetFilter())},
		{Name: "reason", Value: b.GetReason()},
		{Name: "rate", Value: fmt.Sprintf("%g/s", b.GetRate())},
		{Name: "actor", Value: b.GetActor()},
		{Name: "request", Value: b.GetRequestId()},
		{Name: "created", Value: output.Moment(b.GetCreateTime())},
		{Name: "ended", Value: output.Moment(b.GetEndTime())},
		{Name: "runs ended", Value: output.Moment(b.GetRunsEndTime())},
	})
}

func action(b *signalboxv1.Batch) string {
	return strings.TrimSpace(b.GetAction() + " " + b.GetVersion())
}

// part is a number of runs and what they have in common.
type part struct {
	n    int64
	word string
}

// words lists numbers, without those that are 0.
func words(parts ...part) string {
	var list []string
	for _, p := range parts {
		if p.n > 0 {
			list = append(list, fmt.Sprintf("%d %s", p.n, p.word))
		}
	}
	return strings.Join(list, ", ")
}

// counts lists a batch's counts of items by status.
func counts(b *signalboxv1.Batch) string {
	line := words(part{b.GetSucceeded(), "succeeded"}, part{b.GetOutcomes().GetStarted(), "started"},
		part{b.GetRefused(), "refused"},
		part{b.GetFailed(), "failed"}, part{b.GetPending(), "pending"})
	if line != "" {
		line = ": " + line
	}
	return fmt.Sprint(b.GetTotal()) + line
}

// outcomeCounts lists the outcomes of the runs that a batch started.
func outcomeCounts(b *signalboxv1.Batch) string {
	o := b.GetOutcomes()
	failed := o.GetFailedSameCause() + o.GetFailedOtherCause()
	word := "failed"
	if failed > 0 {
		word += fmt.Sprintf(" (%d with the same cause)", o.GetFailedSameCause())
	}
	return words(part{o.GetOpen(), "open"}, part{o.GetCompleted(), "completed"}, part{failed, word},
		part{o.GetCanceled(), "canceled"}, part{o.GetTerminated(), "terminated"},
		part{o.GetUnknown(), "unknown"})
}

// filterLine is the filter in the words of the flags; empty for a batch of run IDs.
func filterLine(f *signalboxv1.RunFilter) string {
	if f == nil {
		return ""
	}
	return runcmd.FilterLine(f, "", "")
}

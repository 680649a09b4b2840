package message

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc/selection"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/label"
)

// FilterOf returns the filter without a project of a message that selects runs; prefix precedes the names of its fields in errors.
func FilterOf(of proto.Message, prefix string) (run.Filter, error) {
	m := selection.Of(of)
	f := run.Filter{
		Workflow: m.GetWorkflow(), Version: m.GetVersion(), Problems: m.GetProblems(), Trigger: m.GetTrigger(), Text: m.GetText(),
		NotReplayed: m.GetNotReplayed(), ParentRunID: m.GetParentRunId(), ReplayOf: m.GetReplayOf(), BatchID: m.GetBatchId(), StartedByBatchID: m.GetStartedByBatchId(),
		FailureGroup: m.GetFailureGroup(), ErrorType: m.GetErrorType(),
	}
	if f.Version != "" && f.Workflow == "" { // it would have to be searched among all runs of the project
		return run.Filter{}, apperror.New(apperror.Invalid, apperror.InvalidArgument, "version %q without a workflow: name the workflow as well", f.Version).
			WithField(prefix+"workflow", "is required with version")
	}
	for _, status := range m.GetStatuses() {
		f.Statuses = append(f.Statuses, run.Status(status))
	}
	var err error
	if f.Labels, err = label.Parse(prefix+"labels", m.GetLabels()); err != nil {
		return run.Filter{}, err
	}
	for _, bound := range []struct {
		to    *time.Time
		field string
		given *timestamppb.Timestamp
	}{
		{&f.Since, "since", m.GetSince()}, {&f.Until, "until", m.GetUntil()},
		{&f.EndedSince, "ended_since", m.GetEndedSince()}, {&f.EndedUntil, "ended_until", m.GetEndedUntil()},
	} {
		if *bound.to, err = Time(prefix+bound.field, bound.given); err != nil {
			return run.Filter{}, err
		}
	}
	return f, nil
}

// Conditions returns the conditions of a filter as a message.
func Conditions(f run.Filter) *signalboxv1.BatchFilter {
	m := &signalboxv1.BatchFilter{
		Workflow: f.Workflow, Version: f.Version, Since: Timestamp(f.Since), Until: Timestamp(f.Until), Problems: f.Problems, Trigger: f.Trigger,
		NotReplayed: f.NotReplayed, FailureGroup: f.FailureGroup, Text: f.Text, ParentRunId: f.ParentRunID, ReplayOf: f.ReplayOf,
		BatchId: f.BatchID, StartedByBatchId: f.StartedByBatchID, Labels: label.Texts(f.Labels),
		EndedSince: Timestamp(f.EndedSince), EndedUntil: Timestamp(f.EndedUntil), ErrorType: f.ErrorType,
	}
	for _, status := range f.Statuses {
		m.Statuses = append(m.Statuses, string(status))
	}
	return m
}

// Longest is the order of a list by length; a filter does not have it.
const Longest = "longest"

// SetOrder sets the order that a field of a request has as a word.
func SetOrder(f *run.Filter, field, order string) error {
	switch order {
	case "", "newest", Longest:
	case "oldest":
		f.OldestFirst = true
	default:
		return apperror.New(apperror.Invalid, apperror.InvalidArgument, "order %q: use newest, oldest or longest", order).
			WithField(field, "must be newest, oldest or longest")
	}
	return nil
}

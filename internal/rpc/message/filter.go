package message

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/label"
)

// RunFilter is the part of a request that selects runs: the same for lists, counts, exports and batches.
type RunFilter interface {
	GetStatuses() []string
	GetWorkflow() string
	GetVersion() string
	GetSince() *timestamppb.Timestamp
	GetUntil() *timestamppb.Timestamp
	GetProblems() []string
	GetTrigger() string
	GetText() string
	GetNotReplayed() bool
	GetParentRunId() string
	GetReplayOf() string
	GetBatchId() string
	GetStartedByBatchId() string
	GetFailureGroup() string
	GetLabels() []string
}

// FilterOf returns the filter without a project; prefix precedes the names of its fields in errors.
func FilterOf(m RunFilter, prefix string) (run.Filter, error) {
	f := run.Filter{
		Workflow: m.GetWorkflow(), Version: m.GetVersion(), Problems: m.GetProblems(), Trigger: m.GetTrigger(), Text: m.GetText(),
		NotReplayed: m.GetNotReplayed(), ParentRunID: m.GetParentRunId(), ReplayOf: m.GetReplayOf(), BatchID: m.GetBatchId(), StartedByBatchID: m.GetStartedByBatchId(),
		FailureGroup: m.GetFailureGroup(),
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
	if f.Since, err = Time(prefix+"since", m.GetSince()); err != nil {
		return run.Filter{}, err
	}
	f.Until, err = Time(prefix+"until", m.GetUntil())
	return f, err
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

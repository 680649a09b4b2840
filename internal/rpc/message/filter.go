package message

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// text is a text of a message and of a filter.
type text struct{ message, filter *string }

// texts returns the conditions that are one text.
func texts(m *signalboxv1.RunFilter, f *run.Filter) []text {
	return []text{
		{&m.Workflow, &f.Workflow},
		{&m.Version, &f.Version},
		{&m.ErrorType, &f.ErrorType},
		{&m.FailureGroup, &f.FailureGroup},
		{&m.Retrying, &f.Retrying},
		{&m.ErrorText, &f.ErrorText},
		{&m.FailedTask, &f.FailedTask},
		{&m.Words, &f.Words},
		{&m.Waiting, &f.Waiting},
		{&m.Cause, &f.Cause},
		{&m.Trigger, &f.Trigger},
		{&m.Text, &f.Text},
		{&m.ParentRunId, &f.ParentRunID},
		{&m.ReplayOf, &f.ReplayOf},
		{&m.BatchId, &f.BatchID},
		{&m.StartedByBatchId, &f.StartedByBatchID},
	}
}

// bound is a time of a message and of a filter.
type bound struct {
	field   string
	message **timestamppb.Timestamp
	filter  *time.Time
}

// bounds returns the conditions that are a time.
func bounds(m *signalboxv1.RunFilter, f *run.Filter) []bound {
	return []bound{
		{"since", &m.Since, &f.Since},
		{"until", &m.Until, &f.Until},
		{"ended_since", &m.EndedSince, &f.EndedSince},
		{"ended_until", &m.EndedUntil, &f.EndedUntil},
	}
}

// FilterOf returns the filter, without a project, of a message, which may be nil; prefix precedes the names of its
// fields in errors.
func FilterOf(m *signalboxv1.RunFilter, prefix string) (f run.Filter, err error) {
	if m == nil {
		return f, nil
	}
	f.Stuck, f.NotReplayed = m.GetStuck(), m.GetNotReplayed()
	for _, status := range m.GetStatuses() {
		f.Statuses = append(f.Statuses, run.Status(status))
	}
	for _, t := range texts(m, &f) {
		*t.filter = *t.message
	}
	for _, b := range bounds(m, &f) {
		if *b.filter, err = Time(prefix+b.field, *b.message); err != nil {
			return run.Filter{}, err
		}
	}
	f.Labels, err = run.ParseLabels(prefix+"labels", m.GetLabels())
	return f, err
}

// RunFilter returns the message of a filter.
func RunFilter(f run.Filter) *signalboxv1.RunFilter {
	m := &signalboxv1.RunFilter{Stuck: f.Stuck, NotReplayed: f.NotReplayed, Labels: run.LabelTexts(f.Labels)}
	for _, status := range f.Statuses {
		m.Statuses = append(m.Statuses, string(status))
	}
	for _, t := range texts(m, &f) {
		*t.message = *t.filter
	}
	for _, b := range bounds(m, &f) {
		*b.message = Timestamp(*b.filter)
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

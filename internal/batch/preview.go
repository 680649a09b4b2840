package batch

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/run/control"
)

// maxSample is the number of IDs in [Ineligible].
const maxSample = 10

// Preview describes the effect that a batch would have on the selected runs in their current state.
type Preview struct {
	// Batch has no ID; its Total is the number of selected runs that exist.
	Batch Batch
	// Eligible counts the runs on which the action takes effect, Unchanged those on which it succeeds without an effect.
	Eligible, Unchanged int64
	// Ineligible are the other runs by reason, in order of the reasons.
	Ineligible []Ineligible
}

// Ineligible are runs for which the action is refused.
type Ineligible struct {
	Reason string
	Count  int64
	// Sample are the IDs of some of them.
	Sample []string
}

// Preview returns what Start would select, by the table of controls. It starts nothing.
func (s *Service) Preview(ctx context.Context, req StartRequest) (Preview, error) {
	if req.ExpectedTotal != nil {
		return Preview{}, apperror.New(apperror.Invalid, apperror.InvalidArgument,
			"the expected total is given for a dry run, which returns it: leave it out").
			WithField("expectedTotal", "only without a dry run")
	}
	reason := req.Reason
	req.Reason = cmp.Or(reason, "dry run") // it changes nothing that would need one
	b, ids, err := s.prepare(ctx, req)
	if err != nil {
		return Preview{}, err
	}
	b.Reason = reason
	states, err := s.store.RunStates(ctx, b, ids)
	if err != nil {
		return Preview{}, err
	}
	return preview(b, states, ids), nil
}

func preview(b Batch, states []StateCount, ids []string) Preview {
	p := Preview{Batch: b}
	reasons := map[string]Ineligible{}
	for _, s := range states {
		p.Batch.Total += s.Count
		switch answer := control.Decide(b.Action.control(), s.State); answer.Effect {
		case control.Done:
			p.Eligible += s.Count
		case control.Nothing:
			p.Unchanged += s.Count
		case control.Refused:
			r := reasons[answer.Reason]
			reasons[answer.Reason] = Ineligible{answer.Reason, r.Count + s.Count, append(r.Sample, s.Sample...)}
		}
	}
	if missing := int64(len(ids)) - p.Batch.Total; b.Filter == nil && missing > 0 {
		reasons[apperror.RunNotFound] = Ineligible{Reason: apperror.RunNotFound, Count: missing}
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		r := reasons[reason]
		slices.Sort(r.Sample)
		r.Sample = r.Sample[:min(len(r.Sample), maxSample)]
		p.Ineligible = append(p.Ineligible, r)
	}
	return p
}

// control returns the control of a run that the action applies.
func (a Action) control() control.Control {
	switch a {
	case Terminate:
		return control.Terminate
	case Replay:
		return control.Replay
	case Cancel:
		return control.Cancel
	}
	return control.Cancel
}

// TotalChanged returns the error for a filter that selects another number of runs than the caller expected.
func TotalChanged(expected, total int64) error {
	return apperror.New(apperror.Refused, apperror.BatchTotalChanged,
		"the filter selects %d runs now, not the expected %d; nothing was changed: check the selection and try again", total,
		expected).
		WithFact("total", strconv.FormatInt(total, 10)).WithFact("expected", strconv.FormatInt(expected, 10))
}

package start

import (
	"context"
	"encoding/json"
	"maps"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// Masking returns the input of a run that is to be inserted as its row will show it, and a function that reports
// whether a text contains a sensitive value of that run.
type Masking func(ctx context.Context, r run.Run) (shown json.RawMessage, sensitive func(text string) bool, err error)

// addLabels sets the labels of a run that is to be inserted: those of the request, and for other keys those of the
// document. A replay has the labels of the replayed run instead of those of the document.
//
// A caller of the API receives an error for a label of the document that has no valid value. A run that an event, the
// clock or another run starts must not be lost for that: it is started without the label, and the audit log and the log
// record the reason.
func (s *Service) addLabels(ctx context.Context, doc *dsl.Document, req Request, r *run.Run) (err error) {
	if err := run.CheckLabels(req.Labels); err != nil {
		return err
	}
	request := labelRequest{
		Given: req.Labels, Own: req.Labels, Document: doc.Labels, Strict: req.Trigger == run.TriggerAPI,
	}
	if req.ReplayOf != "" {
		request.Own, request.Document = req.Replay.Labels, nil // the others are visible already
	}
	if len(request.Given)+len(request.Document) == 0 {
		return nil
	}
	request.Input, request.Sensitive = r.Input, func(string) bool { return false }
	if s.opts.Mask != nil {
		if request.Input, request.Sensitive, err = s.opts.Mask(ctx, *r); err != nil {
			return err
		}
	}
	r.Labels, r.MissingLabels, err = request.Labels()
	if err == nil && len(r.MissingLabels) > 0 {
		logger.FromContext(ctx).WarnContext(ctx, "Run starts without some of its labels", "run_id", r.ID,
			"workflow", r.Workflow, "labels", r.MissingLabels)
	}
	return err
}

// maxLabelFuel is the compute budget of all labels of one run.
const maxLabelFuel = 200_000

// labelRequest is what the labels of a run are computed from.
type labelRequest struct {
	// Given are the labels of the request. They replace those of the document with the same key. Own are those of them
	// that the caller has given for this run.
	Given, Own map[string]string
	Document   []dsl.Label
	// Input is the input with marks in place of sensitive values; Sensitive reports whether a text contains such a value.
	Input     json.RawMessage
	Sensitive func(text string) bool
	// Strict makes a label of the document without a valid value an error. Otherwise the run starts without it.
	Strict bool
}

const sensitiveLabel = "the value contains a sensitive value of the input, which all readers would see"

// Labels returns the labels of the run, and the reasons why labels of the document are missing, by key. Those reasons
// quote no values.
func (r labelRequest) Labels() (labels, missing map[string]string, err error) {
	violations := map[string]string{}
	for key, value := range r.Own {
		if r.Sensitive(value) {
			violations[key] = sensitiveLabel
		}
	}
	if len(violations) > 0 {
		return nil, nil, run.InvalidLabels(apperror.InvalidArgument, violations)
	}
	labels, missing, err = r.compute()
	if err != nil {
		return nil, nil, err
	}
	if len(missing) > 0 && r.Strict {
		return nil, nil, run.InvalidLabels(apperror.InvalidInput, missing)
	}
	maps.Copy(labels, r.Given)
	return labels, missing, run.CheckLabelCount(labels)
}

// compute evaluates the labels of the document, except those that are given.
func (r labelRequest) compute() (labels, missing map[string]string, err error) {
	labels, missing = map[string]string{}, map[string]string{}
	if len(r.Document) == 0 {
		return labels, missing, nil
	}
	input, err := jq.DecodeJSON(r.Input)
	if err != nil {
		return nil, nil, apperror.New(apperror.Invalid, apperror.InvalidInput, "the input is not JSON: %v",
			err).WithField("input", "%v", err)
	}
	fuel := jq.NewFuel(maxLabelFuel)
	for _, l := range r.Document {
		if _, replaced := r.Given[l.Key]; replaced {
			continue
		}
		result, err := l.Eval(input, fuel)
		value, violation := dsl.LabelValue(result)
		switch {
		case err != nil && r.Strict:
			missing[l.Key] = "the expression of the workflow fails for this input: " + err.Error()
		case err != nil:
			missing[l.Key] = "the expression of the workflow fails for this input"
		case strings.Contains(value, redact.Mark), r.Sensitive(value):
			missing[l.Key] = sensitiveLabel
		case violation != "":
			missing[l.Key] = "the value " + violation
		case value != "":
			labels[l.Key] = value
		}
	}
	return labels, missing, nil
}

// Package label checks the labels of runs, and computes those that a document defines.
//
//	err := label.Check(map[string]string{"order": "4711"})
//	labels, err := label.Parse("labels", []string{"order=4711"})
//	labels, missing, err := label.Request{Document: doc.Labels, Input: input, Sensitive: sensitive}.Labels()
//
// It is pure: it stores nothing.
package label

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

// maxFuel is the compute budget of all labels of one run.
const maxFuel = 200_000

// Check returns an error that names each invalid label.
func Check(labels map[string]string) error {
	violations := map[string]string{}
	for key, value := range labels {
		if violation := dsl.LabelKeyViolation(key); violation != "" {
			violations[key] = "the key " + violation
		} else if violation := dsl.LabelValueViolation(value); violation != "" {
			violations[key] = "the value " + violation
		}
	}
	if len(violations) > 0 {
		return invalid(apperror.InvalidArgument, violations)
	}
	return checkCount(labels)
}

func checkCount(labels map[string]string) error {
	if len(labels) <= dsl.MaxLabels {
		return nil
	}
	return apperror.New(apperror.Invalid, apperror.InvalidArgument, "%d labels: a run can have at most %d", len(labels),
		dsl.MaxLabels).
		WithField("labels", "at most %d", dsl.MaxLabels)
}

// invalid returns the error for labels with violations, by key.
func invalid(reason string, violations map[string]string) *apperror.Error {
	keys := slices.Sorted(maps.Keys(violations))
	e := apperror.New(apperror.Invalid, reason, "label %q: %s", keys[0], violations[keys[0]])
	for _, key := range keys {
		e = e.WithField("labels."+key, "%s", violations[key])
	}
	return e
}

// Parse reads the labels of a filter, each as key=value; field is their name in errors.
func Parse(field string, texts []string) (map[string]string, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	invalid := func(format string, args ...any) error {
		return apperror.New(apperror.Invalid, apperror.InvalidArgument, format, args...).WithField(field, format, args...)
	}
	labels := make(map[string]string, len(texts))
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, invalid("the label %q is not of the form key=value", text)
		}
		if earlier, there := labels[key]; there && earlier != value {
			return nil, invalid("the label %q has two values, %q and %q: a run has one value for a key", key, earlier, value)
		}
		labels[key] = value
	}
	return labels, nil
}

// Texts returns labels as Parse reads them, sorted; nil if there are none.
func Texts(labels map[string]string) (texts []string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		texts = append(texts, key+"="+labels[key])
	}
	return texts
}

// Request is what the labels of a run are computed from.
type Request struct {
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

const sensitiveValue = "the value contains a sensitive value of the input, which all readers would see"

// Labels returns the labels of the run, and the reasons why labels of the document are missing, by key. Those reasons
// quote no values.
func (r Request) Labels() (labels, missing map[string]string, err error) {
	violations := map[string]string{}
	for key, value := range r.Own {
		if r.Sensitive(value) {
			violations[key] = sensitiveValue
		}
	}
	if len(violations) > 0 {
		return nil, nil, invalid(apperror.InvalidArgument, violations)
	}
	labels, missing, err = r.compute()
	if err != nil {
		return nil, nil, err
	}
	if len(missing) > 0 && r.Strict {
		return nil, nil, invalid(apperror.InvalidInput, missing)
	}
	maps.Copy(labels, r.Given)
	return labels, missing, checkCount(labels)
}

// compute evaluates the labels of the document, except those that are given.
func (r Request) compute() (labels, missing map[string]string, err error) {
	labels, missing = map[string]string{}, map[string]string{}
	if len(r.Document) == 0 {
		return labels, missing, nil
	}
	input, err := jq.DecodeJSON(r.Input)
	if err != nil {
		return nil, nil, apperror.New(apperror.Invalid, apperror.InvalidInput, "the input is not JSON: %v",
			err).WithField("input", "%v", err)
	}
	fuel := jq.NewFuel(maxFuel)
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
			missing[l.Key] = sensitiveValue
		case violation != "":
			missing[l.Key] = "the value " + violation
		case value != "":
			labels[l.Key] = value
		}
	}
	return labels, missing, nil
}

package run

import (
	"maps"
	"slices"
	"strings"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
)

// CheckLabels returns an error that names each invalid label.
func CheckLabels(labels map[string]string) error {
	violations := map[string]string{}
	for key, value := range labels {
		if violation := dsl.LabelKeyViolation(key); violation != "" {
			violations[key] = "the key " + violation
		} else if violation := dsl.LabelValueViolation(value); violation != "" {
			violations[key] = "the value " + violation
		}
	}
	if len(violations) > 0 {
		return InvalidLabels(apperror.InvalidArgument, violations)
	}
	return CheckLabelCount(labels)
}

func CheckLabelCount(labels map[string]string) error {
	if len(labels) <= dsl.MaxLabels {
		return nil
	}
	return apperror.New(apperror.Invalid, apperror.InvalidArgument, "%d labels: a run can have at most %d", len(labels),
		dsl.MaxLabels).
		WithField("labels", "at most %d", dsl.MaxLabels)
}

// InvalidLabels returns the error for labels with violations, by key.
func InvalidLabels(reason string, violations map[string]string) *apperror.Error {
	keys := slices.Sorted(maps.Keys(violations))
	e := apperror.New(apperror.Invalid, reason, "label %q: %s", keys[0], violations[keys[0]])
	for _, key := range keys {
		e = e.WithField("labels."+key, "%s", violations[key])
	}
	return e
}

// ParseLabels reads the labels of a filter, each as key=value; field is their name in errors.
func ParseLabels(field string, texts []string) (map[string]string, error) {
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

// LabelTexts returns labels as ParseLabels reads them, sorted; nil if there are none.
func LabelTexts(labels map[string]string) (texts []string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		texts = append(texts, key+"="+labels[key])
	}
	return texts
}

package invocation

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-dev/signalbox/internal/cli/exit"
)

// Labels is the flag --label of the commands that start a run.
type Labels struct{ texts []string }

// Bind adds the flag.
func (l *Labels) Bind(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&l.texts, "label", "l", nil, "`key=value`: a label of the run; may be repeated")
}

// Given returns the labels by key; nil if there are none.
func (l *Labels) Given() (map[string]string, error) {
	if err := CheckLabels(l.texts); err != nil || len(l.texts) == 0 {
		return nil, err
	}
	labels := make(map[string]string, len(l.texts))
	for _, text := range l.texts {
		key, value, _ := strings.Cut(text, "=")
		if earlier, there := labels[key]; there {
			return nil, exit.Usagef("--label %s has two values, %q and %q", key, earlier, value)
		}
		labels[key] = value
	}
	return labels, nil
}

// CheckLabels returns an error for a text that is not of the form key=value.
func CheckLabels(texts []string) error {
	for _, text := range texts {
		if key, _, ok := strings.Cut(text, "="); !ok || key == "" {
			return exit.Usagef("--label %q: write key=value", text)
		}
	}
	return nil
}

// LabelLine returns labels in one line, sorted by key.
func LabelLine(labels map[string]string) string {
	parts := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, key+"="+labels[key])
	}
	return strings.Join(parts, ", ")
}

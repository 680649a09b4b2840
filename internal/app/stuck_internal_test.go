package app

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run/stuck"
	"github.com/signalbox-dev/signalbox/internal/run/stuck/verdict"
)

// hiding knows one secret of the run r1.
type hiding struct{}

func (hiding) Text(_ context.Context, runID, text string) (string, error) {
	if runID != "r1" {
		return text, nil
	}
	return strings.ReplaceAll(text, "planted", "⟦redacted⟧"), nil
}

// noted keeps what is written.
type noted struct {
	stuck.Store

	failures []stuck.TaskFailure
}

func (n *noted) NoteFailures(_ context.Context, failures []stuck.TaskFailure) error {
	n.failures = failures
	return nil
}

func TestWhyARunIsStuckHasMarks(t *testing.T) {
	t.Parallel()
	kept := &noted{}
	require.NoError(t, noting{kept, hiding{}}.NoteFailures(t.Context(), []stuck.TaskFailure{{RunID: "r1", Text: "no planted"}, {RunID: "r2", Text: "planted"}}))
	require.Equal(t, []stuck.TaskFailure{{RunID: "r1", Text: "no ⟦redacted⟧"}, {RunID: "r2", Text: "planted"}}, kept.failures)

	x, err := marked(t.Context(), hiding{}, "r1", verdict.Execution{
		Failure: "of planted", Activities: []verdict.Activity{{Failure: "a"}, {Failure: "planted"}},
	})
	require.NoError(t, err)
	require.Equal(t, verdict.Execution{Failure: "of ⟦redacted⟧", Activities: []verdict.Activity{{Failure: "a"}, {Failure: "⟦redacted⟧"}}}, x)
}

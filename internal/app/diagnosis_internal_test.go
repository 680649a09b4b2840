package app

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
)

// fakeRedactor redacts one secret of the run r1.
type fakeRedactor struct{}

func (fakeRedactor) Text(_ context.Context, runID, text string) (string, error) {
	if runID != "r1" {
		return text, nil
	}
	return strings.ReplaceAll(text, "planted", "⟦redacted⟧"), nil
}

func TestStuckFailuresAreRedacted(t *testing.T) {
	t.Parallel()
	x, err := redactExecution(t.Context(), fakeRedactor{}, "r1", diagnose.Execution{
		Failure: "of planted", Activities: []diagnose.Activity{{Failure: "a"}, {Failure: "planted"}},
	})
	require.NoError(t, err)
	require.Equal(t, diagnose.Execution{
		Failure: "of ⟦redacted⟧", Activities: []diagnose.Activity{{Failure: "a"}, {Failure: "⟦redacted⟧"}}}, x)
}

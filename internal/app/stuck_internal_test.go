package app

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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

func TestWhyARunIsStuckHasMarks(t *testing.T) {
	t.Parallel()
	x, err := marked(t.Context(), hiding{}, "r1", verdict.Execution{
		Failure: "of planted", Activities: []verdict.Activity{{Failure: "a"}, {Failure: "planted"}},
	})
	require.NoError(t, err)
	require.Equal(t, verdict.Execution{Failure: "of ⟦redacted⟧", Activities: []verdict.Activity{{Failure: "a"}, {Failure: "⟦redacted⟧"}}}, x)
}

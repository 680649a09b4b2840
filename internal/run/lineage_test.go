package run_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run"
)

func TestLineage(t *testing.T) {
	t.Parallel()
	first := run.Run{Workflow: "shop/a"}
	second := run.Run{Workflow: "shop/b", Lineage: first.Next()}
	require.Equal(t, run.Lineage{Generation: 1, Workflows: []string{"shop/a"}}, second.Lineage)
	third := run.Run{Workflow: "shop/a", Lineage: second.Next()}
	require.Equal(t, run.Lineage{Generation: 2, Workflows: []string{"shop/a", "shop/b"}}, third.Lineage)
	require.True(t, third.Lineage.Descends(third.Workflow))
	require.False(t, second.Lineage.Descends(second.Workflow))
	require.Equal(t, 3, third.Next().Generation)
	require.Len(t, third.Next().Workflows, 2, "each workflow once")
	require.Equal(t, run.Lineage{Generation: 2, Workflows: []string{"shop/a", "shop/b"}}, second.Lineage.Join(third.Lineage))
	require.True(t, first.Lineage.IsZero())
	require.Len(t, second.Lineage.Workflows, 1, "an ancestor's lineage does not change")
}

package dispatch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/heart"
	"github.com/signalbox-dev/signalbox/dispatch/internal/owner"
)

func TestLatecomers(t *testing.T) {
	t.Parallel()
	life := func(project string, alive bool) heart.Life {
		return heart.Life{Alive: alive, Beat: contract.Beat{Projects: []string{project}, Serves: 1}}
	}
	o := owner.Ownership{Name: Name{Project: "shop", TaskQueue: "orders"}, Workers: []contract.Worker{{ServerID: "forgotten"}, {ServerID: "alive"}}}
	lives := map[string]heart.Life{"alive": life("shop", true), "b": life("shop", false), "a": life("shop", false), "elsewhere": life("bank", false)}
	known := map[string]bool{"before": true, "alive": true}
	late := latecomers(lives, o, known)
	require.Equal(t, []string{"a", "b", "forgotten"}, late)
	require.Empty(t, known, "who is back, and of whom nothing is left, is not kept for ever")
	for _, id := range late {
		known[id] = true
	}
	require.Empty(t, latecomers(lives, o, known), "each is told of once")
	delete(lives, "a")
	lives["b"] = life("shop", true)
	require.Empty(t, latecomers(lives, o, known))
	require.Equal(t, map[string]bool{"forgotten": true}, known)
}

package pubsub_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/pubsub"
)

func closed(signal <-chan struct{}) bool {
	select {
	case <-signal:
		return true
	default:
		return false
	}
}

func TestCollectionReturnsEachNameOnce(t *testing.T) {
	t.Parallel()
	b := pubsub.NewNotifier()
	b.Notify("before")
	c := b.Collect(10)
	signal := c.Changed()
	require.False(t, closed(signal))
	for _, name := range []string{"a", "b", "a"} {
		b.Notify(name)
	}
	require.True(t, closed(signal))
	first, lost := c.Take(1)
	require.False(t, lost)
	require.Len(t, first, 1)
	require.True(t, closed(c.Changed()), "one is left")
	second, _ := c.Take(10)
	require.ElementsMatch(t, []string{"a", "b"}, slices.Concat(first, second))
	require.False(t, closed(c.Changed()))
	c.Close()
	b.Notify("after")
	require.False(t, closed(c.Changed()))
}

func TestFullCollectionReportsTheLoss(t *testing.T) {
	t.Parallel()
	b := pubsub.NewNotifier()
	c := b.Collect(10)
	for i := range 11 {
		b.Notify(strconv.Itoa(i))
	}
	require.True(t, closed(c.Changed()))
	names, lost := c.Take(100)
	require.Empty(t, names)
	require.True(t, lost)
	require.False(t, closed(c.Changed()))
	b.Notify("a")
	require.True(t, closed(c.Changed()))
	names, lost = c.Take(100)
	require.Equal(t, []string{"a"}, names)
	require.False(t, lost)
}

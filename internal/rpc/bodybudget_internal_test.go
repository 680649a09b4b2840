package rpc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOneCallerLeavesHalfOfTheMemory(t *testing.T) {
	t.Parallel()
	c := newCallers(bounds{memory: 80, fair: 4, readingEach: 100, readingAll: 1000})
	for range 40 {
		require.True(t, c.enter("busy", 1))
	}
	require.False(t, c.enter("busy", 1), "more than half, with more than an eighth")
	require.False(t, c.grow("busy", 1))
	for _, other := range []string{"a", "b", "c", "d"} {
		require.False(t, c.enter(other, 11))
		require.True(t, c.enter(other, 10), "an eighth")
		require.False(t, c.grow(other, 1))
	}
	require.False(t, c.enter("e", 1), "all is in use")
	c.free("a", 10)
	require.True(t, c.enter("e", 10))

	for range 40 {
		c.leave("busy")
		c.free("busy", 1)
	}
	for _, other := range []string{"a", "b", "c", "d", "e"} {
		c.leave(other)
	}
	for _, other := range []string{"b", "c", "d", "e"} {
		c.free(other, 10)
	}
	require.Empty(t, c.each)
	require.Zero(t, c.memory)
	require.Zero(t, c.reading)
}

func TestLargestRequestFitsForEveryCaller(t *testing.T) {
	t.Parallel()
	const largest = 100 << 20
	l := newBodyLimiter(bodyOptions{MaxBytes: largest})
	require.True(t, l.callers.enter("a", largest))
	require.True(t, l.callers.enter("a", largest))
	require.False(t, l.callers.enter("a", largest))
	require.True(t, l.callers.enter("b", largest))
	require.True(t, l.callers.enter("c", largest))
}

func TestBodiesThatArriveAreCounted(t *testing.T) {
	t.Parallel()
	c := newCallers(bounds{memory: 1000, readingEach: 2, readingAll: 3})
	require.True(t, c.enter("a", 0))
	require.True(t, c.enter("a", 0))
	require.False(t, c.enter("a", 0), "of one caller")
	require.True(t, c.enter("b", 0))
	require.False(t, c.enter("c", 0), "of all")
	c.leave("a")
	require.True(t, c.enter("c", 0))
}

func TestNewBodyOfAStrangerTakesThePlaceOfTheOldest(t *testing.T) {
	t.Parallel()
	s := newStrangers(2, 3)
	bodies := make([]*requestBody, 6)
	for i := range bodies {
		bodies[i] = &requestBody{}
	}
	require.Nil(t, s.enter(bodies[0], "b"))
	require.Nil(t, s.enter(bodies[1], "a"))
	require.Nil(t, s.enter(bodies[2], "a"))
	require.Same(t, bodies[1], s.enter(bodies[3], "a"), "the oldest of the address")
	require.Same(t, bodies[0], s.enter(bodies[4], "c"), "the oldest of all")
	s.leave(bodies[0])
	s.leave(bodies[2])
	require.Nil(t, s.enter(bodies[5], "d"))
	for _, b := range bodies {
		s.leave(b)
	}
	require.Empty(t, s.counts)
	require.Empty(t, s.places)
	require.Zero(t, s.bodies.Len())
}

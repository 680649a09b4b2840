package lru_test

import (
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/lru"
)

func length(s string) int { return len(s) }

func keys(c *lru.Cache[string, string], of ...string) (found []string) {
	for _, k := range of {
		if _, ok := c.Get(k); ok {
			found = append(found, k)
		}
	}
	return found
}

func TestLeastRecentlyUsedValueIsDropped(t *testing.T) {
	t.Parallel()
	c := lru.New[string](2, lru.One[string])
	c.Put("a", "1")
	c.Put("b", "2")
	_, found := c.Get("a")
	require.True(t, found)
	c.Put("c", "3")
	require.Equal(t, []string{"a", "c"}, keys(c, "a", "b", "c"))
}

func TestWeightOfAllValuesIsBounded(t *testing.T) {
	t.Parallel()
	c := lru.New[string](10, length)
	c.Put("a", "aaaa")
	c.Put("b", "bbbb")
	c.Put("c", "cc")
	require.Equal(t, []string{"a", "b", "c"}, keys(c, "a", "b", "c"), "10 of 10")
	c.Put("d", "ddddd")
	require.Equal(t, []string{"c", "d"}, keys(c, "a", "b", "c", "d"), "as many are dropped as necessary")
	require.Equal(t, "eleven long", c.Put("e", "eleven long"))
	require.Equal(t, []string{"c", "d"}, keys(c, "c", "d", "e"), "a value over the limit is not kept and drops no other")
}

func TestFirstValueOfAKeyIsKept(t *testing.T) {
	t.Parallel()
	c := lru.New[string](10, length)
	require.Equal(t, "first", c.Put("a", "first"))
	require.Equal(t, "first", c.Put("a", "other"))
	c.Put("b", "bbbbb")
	require.Equal(t, []string{"a", "b"}, keys(c, "a", "b"), "its weight counts once")
	require.Equal(t, "first", c.GetOrBuild("a", func() string { t.Error("built again"); return "" }))
	require.Equal(t, "ccc", c.GetOrBuild("c", func() string { return "ccc" }))
}

func TestConcurrentCallersGetTheSameValue(t *testing.T) {
	t.Parallel()
	c := lru.New[int](1000, lru.One[*string])
	got := make([][]*string, 8)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			for k := range 500 {
				got[i] = append(got[i], c.GetOrBuild(k, func() *string { s := strconv.Itoa(k); return &s }))
			}
		})
	}
	wg.Wait()
	for i := range got {
		for k := range got[i] {
			require.Same(t, got[0][k], got[i][k])
		}
	}
}

package excerpt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/excerpt"
)

func TestOf(t *testing.T) {
	t.Parallel()
	require.Equal(t, "short", excerpt.Of("short", 5))
	require.Equal(t, "lo…", excerpt.Of("longer", 5))
	require.Equal(t, "é…", excerpt.Of("éééé", 6), "no part of a character")
}

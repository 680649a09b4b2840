package apperror_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
)

func TestExcerpt(t *testing.T) {
	t.Parallel()
	require.Equal(t, "short", apperror.Excerpt("short", 5))
	require.Equal(t, "lo…", apperror.Excerpt("longer", 5))
	require.Equal(t, "é…", apperror.Excerpt("éééé", 6), "no part of a character")
}

package spelling_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/config/spelling"
)

func TestDidYouMean(t *testing.T) {
	t.Parallel()
	known := []string{"sqlite", "postgres"}
	require.Equal(t, `, did you mean "postgres"?`, spelling.DidYouMean("postgrse", known))
	require.Equal(t, `, did you mean "sqlite"?`, spelling.DidYouMean("sqlit", known))
	require.Empty(t, spelling.DidYouMean("oracle", known))
	require.Empty(t, spelling.DidYouMean("x", nil))
}

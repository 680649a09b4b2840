package schema_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/config/schema"
)

func TestDidYouMean(t *testing.T) {
	t.Parallel()
	known := []string{"sqlite", "postgres"}
	require.Equal(t, `, did you mean "postgres"?`, schema.DidYouMean("postgrse", known))
	require.Equal(t, `, did you mean "sqlite"?`, schema.DidYouMean("sqlit", known))
	require.Empty(t, schema.DidYouMean("oracle", known))
	require.Empty(t, schema.DidYouMean("x", nil))
}

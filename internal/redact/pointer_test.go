package redact_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/redact"
)

func TestPartsReturnToTheirNames(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]string{
		"": "", "a/b": "a~1b", "a~b": "a~0b", "~1": "~01", "~0/": "~00~1", "é": "é"} {
		require.Equal(t, part, redact.EscapePart(name))
		require.Equal(t, name, redact.UnescapePart(part))
	}
}

func TestPartIndex(t *testing.T) {
	t.Parallel()
	for part, want := range map[string]int{"0": 0, "2": 2} {
		i, ok := redact.PartIndex(part, 3)
		require.True(t, ok, part)
		require.Equal(t, want, i)
	}
	for _, part := range []string{"", "3", "-1", "-", "01", "+1", "1.0", "a"} {
		_, ok := redact.PartIndex(part, 3)
		require.False(t, ok, part)
	}
}

package start

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestRequestIDViolation(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"order-4711":             "",
		"bestellung-ä":           "",
		strings.Repeat("a", 200): "",
		strings.Repeat("a", 201): "has 201 bytes, more than 200",
		" ":                      "is blank",
		"a\xff":                  "is not valid UTF-8",
		"a\nb":                   "contains the character U+000A, which is not printable",
		"a\u202eb":               "contains the character U+202E, which is not printable",
	} {
		require.Equal(t, want, RequestIDViolation(id), "%q", id)
	}
}

func TestRunIDIsDerived(t *testing.T) {
	t.Parallel()
	id := idOf("default", "order-4711")
	require.Equal(t, id, idOf("default", "order-4711"))
	require.NoError(t, uuid.Validate(id))
	for _, other := range [][2]string{{"default", "order-4712"}, {"shop", "order-4711"}, {"defaulto", "rder-4711"}} {
		require.NotEqual(t, id, idOf(other[0], other[1]))
	}
}

package httpcall

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// HTTP/2 may return a response before the transport reports that its request was sent.
func TestResponsesBeforeTheReportOfTheirRequests(t *testing.T) {
	t.Parallel()
	var a attempts
	a.end(true, 302, 0)
	a.sent() // of the first
	a.sent()
	a.end(true, 503, 0)
	a.follow()
	a.end(true, 200, 0)
	a.sent() // of the redirected one
	a.sent() // of the one that was redirected
	var statuses []int
	for _, one := range a.all() {
		require.False(t, one.EndedAt.IsZero())
		require.False(t, one.Unknown)
		statuses = append(statuses, one.Status)
	}
	require.Equal(t, []int{302, 503, 200}, statuses)
}

// A request that the transport repeats on another connection is a separate one, whose first try has an unknown result.
func TestRepeatedRequests(t *testing.T) {
	t.Parallel()
	var a attempts
	a.sent()
	a.sent()
	a.end(true, 200, 0)
	a.end(false, 0, 0) // nothing was sent
	require.Len(t, a.all(), 2)
	require.True(t, a.all()[0].Unknown)
	require.Equal(t, 200, a.all()[1].Status)
}

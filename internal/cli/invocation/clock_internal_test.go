package invocation

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAgesAreByTheClockOfTheServer calls servers with other clocks than this machine.
func TestAgesAreByTheClockOfTheServer(t *testing.T) {
	t.Parallel()
	here := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		date string
		want time.Time
	}{
		"ahead":           {"Sun, 01 Mar 2026 15:00:00 GMT", here.Add(3 * time.Hour)},
		"behind":          {"Sun, 01 Mar 2026 11:00:00 GMT", here.Add(-time.Hour)},
		"the same second": {"Sun, 01 Mar 2026 11:59:59 GMT", here},
		"no date":         {"soon", here},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", tt.date)
		}))
		t.Cleanup(server.Close)
		s := New(Streams{Now: func() time.Time { return here }})
		s.address = server.URL
		require.NoError(t, s.prepare())
		require.Equal(t, here, s.Now(), name)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		require.NoError(t, err)
		res, err := s.client.Do(req)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, tt.want, s.Now(), name)
	}
}

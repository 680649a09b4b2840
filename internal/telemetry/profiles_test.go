package telemetry_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/freeport"
	"github.com/signalbox-dev/signalbox/internal/telemetry"
)

func TestProfilesAreServedUntilTheProcessStops(t *testing.T) {
	t.Parallel()
	port, release, err := freeport.Claim(t.Context())
	require.NoError(t, err)
	defer release()
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	profiles := telemetry.NewProfiles(address)
	require.NoError(t, profiles.Start(t.Context()))
	require.ErrorContains(t, telemetry.NewProfiles(address).Start(t.Context()), "telemetry.profile_listen")

	require.Contains(t, get(t, address, "/debug/pprof/goroutine?debug=1"), "goroutine profile: total ")
	require.NotEmpty(t, get(t, address, "/debug/pprof/heap"))
	// A profile of a minute must not delay the stop.
	long := make(chan struct{})
	go func() {
		defer close(long)
		if response, err := request(t.Context(), address, "/debug/pprof/trace?seconds=60"); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	}()
	require.NoError(t, profiles.Stop(t.Context()))
	<-long
}

func TestProfilesRefuseOtherHosts(t *testing.T) {
	t.Parallel()
	port, release, err := freeport.Claim(t.Context())
	require.NoError(t, err)
	defer release()
	listen := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	profiles := telemetry.NewProfiles(listen)
	require.NoError(t, profiles.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, profiles.Stop(context.WithoutCancel(t.Context()))) })
	for host, want := range map[string]int{
		"": http.StatusOK, "localhost:6060": http.StatusOK, "[::1]:6060": http.StatusOK,
		"rebound.example:6060": http.StatusForbidden, "rebound.example": http.StatusForbidden,
		"127.0.0.1.rebound.example": http.StatusForbidden,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listen+"/debug/pprof/goroutine?debug=1",
			nil)
		require.NoError(t, err)
		r.Host, r.Close = host, true
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, want, response.StatusCode, host)
	}
}

func get(t *testing.T, address, path string) string {
	t.Helper()
	response, err := request(t.Context(), address, path)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(text)
}

func request(ctx context.Context, address, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	r.Close = true
	return (&http.Client{Timeout: time.Minute}).Do(r)
}

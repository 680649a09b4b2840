package connection_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// tlsOptions returns options with TLS.
func tlsOptions(address string, config *tls.Config) conn.Options {
	options := optionsFor(address)
	options.Client.ConnectionOptions.TLS = config
	return options
}

func authority(t *testing.T) *conntest.Authority {
	t.Helper()
	a, err := conntest.NewAuthority()
	require.NoError(t, err)
	return a
}

func serverConfig(t *testing.T, a *conntest.Authority, requireClients bool) *tls.Config {
	t.Helper()
	certificate, err := a.Server()
	require.NoError(t, err)
	return a.ServerConfig(certificate, requireClients)
}

func clientCertificate(t *testing.T, a *conntest.Authority, lasts time.Duration) *conntest.Certificate {
	t.Helper()
	certificate, err := a.Client("orders", time.Now().Add(lasts))
	require.NoError(t, err)
	return certificate
}

// Each TLS error is reported as its own kind, and a correction on the server's side alone is enough where that is
// possible.
func TestTLSErrorsAreReportedByKind(t *testing.T) {
	t.Parallel()
	ours, theirs := authority(t), authority(t)
	cases := map[string]struct {
		server, healed *tls.Config
		client         *tls.Config
	}{
		"client with TLS, server without": {
			server: nil, healed: serverConfig(t, ours, false), client: ours.ClientConfig(nil)},
		"client without TLS, server with": {server: serverConfig(t, ours, false), healed: nil, client: nil},
		"unknown authority": {
			server: serverConfig(t, theirs, false), healed: serverConfig(t, ours, false), client: ours.ClientConfig(nil)},
		"expired client certificate": {
			server: serverConfig(t, ours, true), healed: serverConfig(t, ours, false),
			client: ours.ClientConfig(clientCertificate(t, ours, -time.Hour)),
		},
		"no client certificate": {
			server: serverConfig(t, ours, true), healed: serverConfig(t, ours, false), client: ours.ClientConfig(nil)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			frontend := frontendOfShared(t, conntest.Options{TLS: c.server})
			s := newSubject(t, tlsOptions(frontend.Addr(), c.client))
			s.watch(t)
			noticed := s.waitForState(t, soonBusy, conn.Down, conn.TLSError)
			frontend.SetTLS(c.healed)
			recovered := s.waitForConnection(t, soonIdle)
			s.waitForPolling(t, patience)
			s.waitForCharge(t, s.mustStart(t, order{}), patience)
			promise.Record(t, promise.Figure{Promise: "P-C3", What: "library, " + name + ": until known, and from its repair " +
				"to connected", Aim: "10 s", Trials: 1,
				Figure: promise.Times{noticed, recovered}.String()})
		})
	}
}

// The rotation of a client certificate before its end causes no failure.
func TestClientCertificateRotatedUnderLoad(t *testing.T) {
	t.Parallel()
	a := authority(t)
	frontend := frontendOfShared(t, conntest.Options{TLS: serverConfig(t, a, true)})
	var current atomic.Pointer[conntest.Certificate]
	current.Store(clientCertificate(t, a, time.Hour))
	config := a.ClientConfig(nil)
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &current.Load().Certificate, nil
	}
	s := newSubject(t, tlsOptions(frontend.Addr(), config))
	s.watch(t)
	s.waitForPolling(t, patience)
	was := s.Status()
	load := s.patientTraffic(t, 20*time.Millisecond)
	for range promise.Trials(3, 30) {
		current.Store(clientCertificate(t, a, time.Hour))
		accepted := frontend.Accepted()
		frontend.GoAway() // as the frontend does by itself after five minutes
		require.NoError(t, frontend.Await(t.Context(), func() bool { return frontend.Accepted() > accepted }))
		waitFor(t, 500*time.Millisecond)
	}
	load.requireChargedOnce(t, s)
	require.Empty(t, load.failed(), "%v", load.failed())
	require.Equal(t, was.Since, s.Status().Since)
}

// A new CA requires a new client: the options' Identity reports the change, and the manager swaps the client without a
// gap.
func TestIdentityChangesUnderLoad(t *testing.T) {
	t.Parallel()
	frontend := frontendOfShared(t, conntest.Options{})
	other := frontendOfShared(t, conntest.Options{})
	var moved atomic.Bool
	options := optionsFor(frontend.Addr())
	base := options.Client
	options.Reload = func() (client.Options, error) {
		next := base
		if moved.Load() {
			next.HostPort = other.Addr()
		}
		return next, nil
	}
	options.Identity = func() (string, error) {
		if moved.Load() {
			return "new", nil
		}
		return "old", nil
	}
	s := newSubject(t, options)
	rest := s.waitForIdle(t)
	s.watch(t)
	load := s.patientTraffic(t, 20*time.Millisecond)
	held := s.mustStart(t, order{Hold: 6 * time.Second})
	waitFor(t, time.Second)
	moved.Store(true)
	require.NoError(t, other.AwaitPollers(t.Context(), s.queue, 1))
	platform.Eventually(t, soonBusy, func() string {
		if g := s.Status().Generation; g != 2 {
			return fmt.Sprintf("generation is %d", g)
		}
		return ""
	})
	s.waitForPolling(t, soonBusy)
	require.Equal(t, other.Addr(), s.Status().Address)
	s.waitForCharge(t, held, patience)
	load.requireChargedOnce(t, s)
	require.Empty(t, load.failed(), "a request failed during the swap: %v", load.failed())
	require.Equal(t, 1, s.charges(held))
	require.Zero(t, s.Status().Statistics.Outages)
	s.requireNoLeak(t, rest)
	require.NoError(t, frontend.Await(t.Context(), func() bool { return frontend.Connections() == 0 }))
}

func TestAPIKeyRevokedAndRotated(t *testing.T) {
	t.Parallel()
	frontend := frontendOfShared(t, conntest.Options{APIKeys: []string{"first"}})
	var key atomic.Pointer[string]
	set := func(k string) { key.Store(&k) }
	set("first")
	options := optionsFor(frontend.Addr())
	options.Client.ConnectionOptions.TLSDisabled = true
	options.Client.Credentials = client.NewAPIKeyDynamicCredentials(func(context.Context) (string, error) {
		return *key.Load(), nil
	})
	s := newSubject(t, options)
	rest := s.waitForIdle(t)
	s.watch(t)
	var noticed, recovered promise.Times
	for _, next := range []string{"second", "third"} {
		load := s.traffic(t, 200*time.Millisecond)
		frontend.SetAPIKeys(next)
		noticed = append(noticed, s.waitForState(t, soonBusy, conn.Down, conn.AuthFailed))
		load.stop()
		set(next)
		recovered = append(recovered, s.waitForConnection(t, soonIdle))
		s.waitForPolling(t, patience)
		// a task that Temporal sent to a replaced worker takes 10 s more
		s.waitForCharge(t, s.mustStart(t, order{}), patience)
	}
	s.requireNoLeak(t, rest)
	promise.Record(t, promise.Figure{
		Promise: "P-C3", What: "library, API key revoked: until known, under traffic", Aim: "10 s", Trials: len(noticed),
		Figure: noticed.String()})
	promise.Record(t, promise.Figure{
		Promise: "P-C3", What: "library, API key rotated: until connected, without traffic", Aim: "10 s",
		Trials: len(recovered), Figure: recovered.String()})
}

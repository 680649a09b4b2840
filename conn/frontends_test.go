package conn_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/conn/conntest"
)

// TestOneUnavailableFrontendIsNoOutage has two frontends behind one name, of which one answers every request with
// UNAVAILABLE.
func TestOneUnavailableFrontendIsNoOutage(t *testing.T) {
	t.Parallel()
	second := conntest.Run(t, conntest.Options{})
	r := newRig(t, conntest.Options{}, func(o *conn.Options) {
		both := manual.NewBuilderWithScheme("frontends")
		both.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: o.Client.HostPort}, {Addr: second.Addr()}}})
		o.Client.HostPort = "frontends:///both"
		o.Client.ConnectionOptions.DialOptions = append(o.Client.ConnectionOptions.DialOptions, grpc.WithResolvers(both))
	})
	r.connect(t)
	require.NoError(t, r.frontend.Await(soon(t), func() bool {
		return r.frontend.Connections() > 0 && second.Connections() > 0
	}))
	second.Fail("", serviceerror.NewUnavailable("shutting down"))
	for ctx := soon(t); second.Calls("DescribeNamespace") < 6; { // each failing request causes a check
		c, err := r.Client()
		require.NoError(t, err)
		_, _ = c.CheckHealth(ctx, nil)
		require.NoError(t, ctx.Err())
	}
	require.Zero(t, r.Status().Statistics.Outages)

	r.frontend.Fail("", serviceerror.NewUnavailable("shutting down"))
	r.until(t, is(conn.Down, conn.Unreachable))
}

// TestRejectedClientCertificateIsATLSError makes many connections, since the server's alert races with the end of the
// connection.
func TestRejectedClientCertificateIsATLSError(t *testing.T) {
	t.Parallel()
	authority, err := conntest.NewAuthority()
	require.NoError(t, err)
	certificate, err := authority.Server("127.0.0.1")
	require.NoError(t, err)
	r := newRig(t, conntest.Options{TLS: authority.ServerConfig(certificate, true)}, func(o *conn.Options) {
		o.Client.ConnectionOptions.TLS = authority.ClientConfig(nil)
		o.BreakerAfter = 1000
	})
	r.start(t)
	s := r.until(t, func(s conn.Status) bool { return s.State == conn.Down })
	for range 20 {
		require.Equal(t, conn.TLSError, s.Kind, s.LastError)
		require.Contains(t, s.LastError, "tls: ")
		attempts := s.Attempts
		r.ResetBreaker()
		s = r.until(t, func(s conn.Status) bool { return s.Attempts > attempts && !s.NextAttempt.IsZero() })
	}
}

func TestErrorNamesPortOfAnotherProtocol(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	r := newRig(t, conntest.Options{}, func(o *conn.Options) {
		o.Client.HostPort = strings.TrimPrefix(web.URL, "http://")
	})
	r.start(t)
	s := r.until(t, func(s conn.Status) bool { return s.State == conn.Down })
	require.Equal(t, conn.Unreachable, s.Kind)
	require.Contains(t, s.LastError, "is not a Temporal frontend")
	require.NotContains(t, s.LastError, "frame")
}

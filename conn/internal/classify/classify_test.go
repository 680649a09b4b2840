package classify_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/conn/internal/classify"
	"github.com/signalbox-dev/signalbox/conn/internal/machine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestKind(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		want machine.Kind
	}{
		"no error":            {nil, machine.None},
		"refused":             {status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: connection refused"`), machine.Unreachable},
		"unavailable":         {serviceerror.NewUnavailable("shutting down"), machine.Unreachable},
		"wrapped":             {fmt.Errorf("asking: %w", serviceerror.NewUnavailable("shutting down")), machine.Unreachable},
		"no frontend":         {status.Error(codes.Unimplemented, "unknown service"), machine.Unreachable},
		"handshake":           {status.Error(codes.Unavailable, `authentication handshake failed: EOF`), machine.TLSError},
		"expired certificate": {status.Error(codes.Unavailable, `error reading server preface: remote error: tls: expired certificate`), machine.TLSError},
		"no first word":       {status.Error(codes.Unavailable, `error reading server preface: raw-read tcp 127.0.0.1:47002->127.0.0.1:12350: use of closed network connection`), machine.Hung},
		"late":                {status.Error(codes.DeadlineExceeded, "context deadline exceeded"), machine.Hung},
		"late, plain":         {context.DeadlineExceeded, machine.Hung},
		"no namespace":        {serviceerror.NewNamespaceNotFound("ns"), machine.NamespaceMissing},
		"denied":              {serviceerror.NewPermissionDenied("no", ""), machine.AuthFailed},
		"unauthenticated":     {status.Error(codes.Unauthenticated, "who"), machine.AuthFailed},
		"too many":            {serviceerror.NewResourceExhausted(0, "rps"), machine.None},
		"invalid":             {serviceerror.NewInvalidArgument("x"), machine.None},
		"not found":           {serviceerror.NewNotFound("run"), machine.None},
		"internal":            {serviceerror.NewInternal("panic"), machine.None},
		"given up":            {context.Canceled, machine.None},
		"anything":            {errors.New("anything"), machine.None},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, classify.Kind(tt.err))
			require.Equal(t, tt.want != machine.None, classify.Suspicious(tt.err))
		})
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	require.Equal(t, machine.TLSError, classify.Credentials(fmt.Errorf("load the client certificate: %w", errors.New("no such file"))))
	require.Equal(t, machine.TLSError, classify.Credentials(x509.UnknownAuthorityError{}))
	require.Equal(t, machine.AuthFailed, classify.Credentials(errors.New("read the API key: no such file")))
}

func TestDiagnose(t *testing.T) {
	t.Parallel()
	late, cut := context.DeadlineExceeded, status.Error(codes.Unavailable, "error reading server preface: EOF")
	broken := status.Error(codes.Unavailable, `connection error: desc = "transport: failed to write client preface: write: broken pipe"`)
	authority, err := conntest.NewAuthority()
	require.NoError(t, err)
	server, err := authority.Server("localhost")
	require.NoError(t, err)
	secure := conntest.Run(t, conntest.Options{TLS: authority.ServerConfig(server, true)})
	stranger, err := conntest.NewAuthority()
	require.NoError(t, err)
	unknown, err := stranger.Client("orders", time.Now().Add(time.Hour))
	require.NoError(t, err)
	trusts := func(a *conntest.Authority, c *conntest.Certificate) *tls.Config {
		config := a.ClientConfig(c)
		config.ServerName = "localhost"
		return config
	}
	shows := func(a *conntest.Authority, until time.Time) *tls.Config {
		c, err := a.Client("orders", until)
		require.NoError(t, err)
		return trusts(a, c)
	}
	plain := conntest.Run(t, conntest.Options{})
	silent := conntest.Run(t, conntest.Options{})
	silent.Mute()
	gone := conntest.Run(t, conntest.Options{Stopped: true})

	for name, tt := range map[string]struct {
		address string
		config  *tls.Config
		kind    machine.Kind
		err     error
		want    machine.Kind
	}{
		"late, somebody listens":         {silent.Addr(), nil, machine.Hung, late, machine.Hung},
		"late, nobody listens":           {gone.Addr(), nil, machine.Hung, late, machine.Unreachable},
		"cut, the server wants TLS":      {secure.Addr(), nil, machine.Unreachable, cut, machine.TLSError},
		"cut, the server wants none":     {plain.Addr(), nil, machine.Unreachable, cut, machine.Unreachable},
		"cut, the server says nothing":   {silent.Addr(), nil, machine.Unreachable, cut, machine.Unreachable},
		"cut with a good certificate":    {secure.Addr(), shows(authority, time.Now().Add(time.Hour)), machine.Unreachable, cut, machine.Unreachable},
		"broken without a certificate":   {secure.Addr(), trusts(authority, nil), machine.Unreachable, broken, machine.TLSError},
		"broken with an expired one":     {secure.Addr(), shows(authority, time.Now().Add(-time.Hour)), machine.Unreachable, broken, machine.TLSError},
		"broken with an unknown one":     {secure.Addr(), trusts(authority, unknown), machine.Unreachable, broken, machine.TLSError},
		"broken, TLS against clear text": {plain.Addr(), trusts(authority, nil), machine.Unreachable, broken, machine.Unreachable},
		"refused":                        {gone.Addr(), nil, machine.Unreachable, errors.New("refused"), machine.Unreachable},
		"an address of another kind":     {"passthrough:///x", nil, machine.Hung, late, machine.Hung},
		"the scheme that gRPC starts at": {"dns:///" + gone.Addr(), nil, machine.Hung, late, machine.Unreachable},
		"what needs no look":             {gone.Addr(), nil, machine.AuthFailed, late, machine.AuthFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind, err := classify.Diagnose(t.Context(), tt.address, tt.config, tt.kind, tt.err)
			require.Equal(t, tt.want, kind)
			require.ErrorIs(t, err, tt.err)
		})
	}
}

func TestDiagnoseNamesWhatItFound(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	_, err = classify.Diagnose(t.Context(), address, nil, machine.Hung, context.DeadlineExceeded)
	require.ErrorContains(t, err, "refused")
}

func TestExplainSaysWhatListens(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"HTTP/1.1": {status.Error(codes.Unavailable, `connection error: desc = "error reading server preface: http2: failed reading the frame payload: `+
			`http2: frame too large, note that the frame header looked like an HTTP/1.1 header"`), "10.0.0.1:80 is no Temporal frontend"},
		"silent": {status.Error(codes.Unavailable, "error reading server preface: raw-read tcp: use of closed network connection"),
			"10.0.0.1:80 accepts connections and sends nothing"},
	} {
		got := classify.Explain("10.0.0.1:80", tt.err)
		require.ErrorContains(t, got, tt.want, name)
		require.ErrorIs(t, got, tt.err)
		require.NotContains(t, got.Error(), "http2:")
		require.NotContains(t, got.Error(), "closed network")
	}
	other := status.Error(codes.Unavailable, "connection refused")
	require.Equal(t, other, classify.Explain("10.0.0.1:80", other))
	require.NoError(t, classify.Explain("10.0.0.1:80", nil))
}

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
	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/conn/internal/classify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestKind(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		want conntype.Kind
	}{
		"no error": {nil, conntype.None},
		"refused": {
			status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: connection refused"`),
			conntype.Unreachable},
		"unavailable": {serviceerror.NewUnavailable("shutting down"), conntype.Unreachable},
		"wrapped": {
			fmt.Errorf("asking: %w", serviceerror.NewUnavailable("shutting down")), conntype.Unreachable},
		"no frontend": {status.Error(codes.Unimplemented, "unknown service"), conntype.Unreachable},
		"handshake":   {status.Error(codes.Unavailable, `authentication handshake failed: EOF`), conntype.TLSError},
		"expired certificate": {
			status.Error(codes.Unavailable, `error reading server preface: remote error: tls: expired certificate`),
			conntype.TLSError},
		"no preface": {
			status.Error(codes.Unavailable,
				`error reading server preface: raw-read tcp 127.0.0.1:47002->127.0.0.1:12350: use of closed network connection`), conntype.Hung},
		"late": {status.Error(codes.DeadlineExceeded, "context deadline exceeded"), conntype.Hung},
		"reset at its deadline": {
			status.Error(codes.Canceled, "stream terminated by RST_STREAM with error code: CANCEL"), conntype.Hung},
		"reset, from the SDK": {serviceerror.FromStatus(
			status.New(codes.Canceled, "stream terminated by RST_STREAM with error code: CANCEL")), conntype.Hung},
		"reset by a proxy": {status.Error(codes.Internal, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR"),
			conntype.Unreachable},
		"late, plain":     {context.DeadlineExceeded, conntype.Hung},
		"no namespace":    {serviceerror.NewNamespaceNotFound("ns"), conntype.NamespaceMissing},
		"denied":          {serviceerror.NewPermissionDenied("no", ""), conntype.AuthFailed},
		"unauthenticated": {status.Error(codes.Unauthenticated, "no token"), conntype.AuthFailed},
		"too many":        {serviceerror.NewResourceExhausted(0, "rps"), conntype.None},
		"invalid":         {serviceerror.NewInvalidArgument("x"), conntype.None},
		"not found":       {serviceerror.NewNotFound("run"), conntype.None},
		"internal":        {serviceerror.NewInternal("panic"), conntype.None},
		"canceled":        {context.Canceled, conntype.None},
		"anything":        {errors.New("anything"), conntype.None},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, classify.Kind(tt.err))
			require.Equal(t, tt.want != conntype.None, classify.SuggestsOutage(tt.err))
		})
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	require.Equal(t, conntype.TLSError,
		classify.CredentialsKind(fmt.Errorf("load the client certificate: %w", errors.New("no such file"))))
	require.Equal(t, conntype.TLSError, classify.CredentialsKind(x509.UnknownAuthorityError{}))
	require.Equal(t, conntype.AuthFailed, classify.CredentialsKind(errors.New("read the API key: no such file")))
}

func TestDiagnose(t *testing.T) {
	t.Parallel()
	late, cut := context.DeadlineExceeded, status.Error(codes.Unavailable, "error reading server preface: EOF")
	broken := status.Error(codes.Unavailable,
		`connection error: desc = "transport: failed to write client preface: write: broken pipe"`)
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
		kind    conntype.Kind
		err     error
		want    conntype.Kind
	}{
		"deadline, port accepts":    {silent.Addr(), nil, conntype.Hung, late, conntype.Hung},
		"deadline, port closed":     {gone.Addr(), nil, conntype.Hung, late, conntype.Unreachable},
		"cut, server requires TLS":  {secure.Addr(), nil, conntype.Unreachable, cut, conntype.TLSError},
		"cut, server without TLS":   {plain.Addr(), nil, conntype.Unreachable, cut, conntype.Unreachable},
		"cut, server sends nothing": {silent.Addr(), nil, conntype.Unreachable, cut, conntype.Unreachable},
		"cut with a valid certificate": {
			secure.Addr(), shows(authority, time.Now().Add(time.Hour)), conntype.Unreachable, cut, conntype.Unreachable},
		"broken without a certificate": {
			secure.Addr(), trusts(authority, nil), conntype.Unreachable, broken, conntype.TLSError},
		"broken with an expired one": {
			secure.Addr(), shows(authority, time.Now().Add(-time.Hour)), conntype.Unreachable, broken, conntype.TLSError},
		"broken, unknown authority": {
			secure.Addr(), trusts(authority, unknown), conntype.Unreachable, broken, conntype.TLSError},
		"broken, TLS against clear text": {
			plain.Addr(), trusts(authority, nil), conntype.Unreachable, broken, conntype.Unreachable},
		"refused":                  {gone.Addr(), nil, conntype.Unreachable, errors.New("refused"), conntype.Unreachable},
		"custom resolver scheme":   {"passthrough:///x", nil, conntype.Hung, late, conntype.Hung},
		"gRPC's default scheme":    {"dns:///" + gone.Addr(), nil, conntype.Hung, late, conntype.Unreachable},
		"kind is already definite": {gone.Addr(), nil, conntype.AuthFailed, late, conntype.AuthFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind, err := classify.Diagnose(t.Context(), tt.address, tt.config, tt.kind, tt.err)
			require.Equal(t, tt.want, kind)
			require.ErrorIs(t, err, tt.err)
		})
	}
}

func TestDiagnoseAddsDialError(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	_, err = classify.Diagnose(t.Context(), address, nil, conntype.Hung, context.DeadlineExceeded)
	require.ErrorContains(t, err, "refused")
}

func TestExplainNamesPortsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"HTTP/1.1": {status.Error(codes.Unavailable,
			`connection error: desc = "error reading server preface: http2: failed reading the frame payload: `+
				`http2: frame too large, note that the frame header looked like an HTTP/1.1 header"`), "10.0.0.1:80 is not a Temporal frontend"},
		"silent": {status.Error(codes.Unavailable,
			"error reading server preface: raw-read tcp: use of closed network connection"),
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

package rpc_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"github.com/signalbox-dev/signalbox/internal/rpc"
)

// TestIdleConnectionsDoNotBlockCallers opens 5,000 connections that send no complete request, more than the server accepts, and measures how
// long a new caller waits for its response.
func TestIdleConnectionsDoNotBlockCallers(t *testing.T) { //nolint:tparallel // together the subtests would have too many files open
	t.Parallel()
	const flood, limit, most = 5000, 4096, time.Second
	requireFiles(t, flood+limit+500)
	// HTTP/2 frames: a client after connection setup, and one that has sent the first half of a header.
	var settled, halfHeader bytes.Buffer
	for _, b := range []*bytes.Buffer{&settled, &halfHeader} {
		b.WriteString(http2.ClientPreface)
		require.NoError(t, http2.NewFramer(b, nil).WriteSettings())
	}
	require.NoError(t, http2.NewFramer(&halfHeader, nil).WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x82}}))

	for name, test := range map[string]struct {
		encrypted bool
		sent      string
	}{
		"nothing sent":              {false, ""},
		"half a header":             {false, "GET /v1/version HTTP/1.1\r\nHost: local"},
		"HTTP/2 without streams":    {false, settled.String()},
		"HTTP/2 with half a header": {false, halfHeader.String()},
		"no handshake":              {true, ""},
		"half a handshake":          {true, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc"},
	} {
		t.Run(name, func(t *testing.T) {
			caller := &http.Transport{DisableKeepAlives: true}
			scheme := "http://"
			p := start(t, func(o *rpc.Options) {
				o.MaxConnections = limit
				if test.encrypted {
					scheme = "https://"
					o.TLS, caller.TLSClientConfig = selfSigned(t)
				}
			})
			address := p.server.Addr().String()
			for range flood {
				conn, err := net.Dial("tcp", address)
				require.NoError(t, err)
				defer conn.Close()
				_, err = io.WriteString(conn, test.sent)
				require.NoError(t, err)
			}
			slowest := time.Duration(0)
			for range 5 {
				began := time.Now()
				res, err := (&http.Client{Transport: caller, Timeout: time.Minute}).Get(scheme + address + "/v1/version")
				require.NoError(t, err)
				res.Body.Close()
				require.Equal(t, http.StatusOK, res.StatusCode)
				slowest = max(slowest, time.Since(began))
			}
			t.Logf("the slowest of five new callers waited %s beside %d idle connections", slowest.Round(time.Millisecond), flood)
			require.Less(t, slowest, most)
		})
	}
}

// requireFiles raises the limit of open files, or skips the test if that is not allowed.
func requireFiles(t *testing.T, files uint64) {
	t.Helper()
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	if limit.Cur >= files {
		return
	}
	limit.Cur, limit.Max = files, max(files, limit.Max)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Skipf("this needs %d open files: %v; raise the limit with ulimit -n", files, err)
	}
}

// selfSigned creates a certificate for 127.0.0.1, for the server and for its callers.
func selfSigned(t *testing.T) (server, caller *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
}

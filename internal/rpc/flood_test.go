package rpc_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base32"
	"encoding/binary"
	"hash/crc32"
	"io"
	"math/big"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/stopwatch"
	"github.com/signalbox-dev/signalbox/internal/token"
)

// TestIdleConnectionsDoNotBlockCallers opens 5,000 connections that send no complete request, more than the server
// accepts, and measures how long a new caller waits for its response.
func TestIdleConnectionsDoNotBlockCallers( //nolint:tparallel // together the subtests would have too many files open
	t *testing.T) {
	t.Parallel()
	// the limit for the header of a request, and for a handshake, is twice as long
	const flood, limit, most = 5000, 4096, soon
	requireFiles(t, flood+limit+500)
	// HTTP/2 frames: a client after connection setup, and one that has sent the first half of a header.
	var settled, halfHeader bytes.Buffer
	for _, b := range []*bytes.Buffer{&settled, &halfHeader} {
		b.WriteString(http2.ClientPreface)
		require.NoError(t, http2.NewFramer(b, nil).WriteSettings())
	}
	require.NoError(t, http2.NewFramer(&halfHeader,
		nil).WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x82}}))

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
			slowest, watch := time.Duration(0), stopwatch.Start(t)
			for range 5 {
				began := watch.Elapsed()
				res, err := (&http.Client{Transport: caller, Timeout: time.Minute}).Get(scheme + address + "/v1/version")
				require.NoError(t, err)
				res.Body.Close()
				require.Equal(t, http.StatusOK, res.StatusCode)
				slowest = max(slowest, watch.Elapsed()-began)
			}
			t.Logf("the slowest of five new callers waited %s beside %d idle connections", slowest.Round(time.Millisecond),
				flood)
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
	return &tls.Config{MinVersion: tls.VersionTLS12,
			Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
}

// unknownToken returns a text in the format of tokens with a new ID.
func unknownToken() string {
	encoding := base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
	random := make([]byte, 42)
	_, _ = rand.Read(random)
	text := token.Prefix + encoding.EncodeToString(random[:10]) + "_" + encoding.EncodeToString(random[10:])
	return text + encoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text))))
}

// TestUnknownTokensDoNotLockOutCallers sends tokens with new IDs as fast as they are answered, from the address of all
// callers.
func TestUnknownTokensDoNotLockOutCallers(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, nil)
	var valid [][]string
	for range 40 {
		_, header := g.token(map[string]auth.Role{"shop": auth.Viewer})
		valid = append(valid, header)
	}
	ctx, stop := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	var sent atomic.Int64
	for range 20 {
		flood.Go(func() {
			for ctx.Err() == nil {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.base+"/v1/version", http.NoBody)
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Authorization", "Bearer "+unknownToken())
				if res, err := g.client.Do(req); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					res.Body.Close()
					sent.Add(1)
				}
			}
		})
	}
	t.Cleanup(func() {
		stop()
		flood.Wait()
	})
	require.Eventually(t, func() bool { return sent.Load() > 3000 }, time.Minute, time.Millisecond)
	for i, header := range valid {
		if i%2 == 0 {
			g.do("GET", "/v1/projects/shop/runs", "", header...).ok()
		} else {
			g.signIn(header)
		}
	}
}

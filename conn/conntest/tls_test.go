package conntest_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/conn/conntest"
)

func authority(t *testing.T) *conntest.Authority {
	t.Helper()
	a, err := conntest.NewAuthority()
	require.NoError(t, err)
	return a
}

func must(t *testing.T) func(*conntest.Certificate, error) *conntest.Certificate {
	t.Helper()
	return func(c *conntest.Certificate, err error) *conntest.Certificate {
		require.NoError(t, err)
		return c
	}
}

func speaks(config *tls.Config) func(*client.Options) {
	return func(o *client.Options) { o.ConnectionOptions.TLS = config }
}

func TestTLSWithClientCertificates(t *testing.T) {
	t.Parallel()
	a, stranger, ok := authority(t), authority(t), must(t)
	f := conntest.Run(t, conntest.Options{TLS: a.ServerConfig(ok(a.Server()), true)})
	soon := time.Now().Add(time.Minute)
	awaitAnswer(t, connect(t, f, speaks(a.ClientConfig(ok(a.Client("orders", soon))))))

	refused := map[string]*tls.Config{
		"no certificate":         a.ClientConfig(nil),
		"an expired certificate": a.ClientConfig(ok(a.Client("orders", time.Now().Add(-time.Minute)))),
		"another authority":      a.ClientConfig(ok(stranger.Client("orders", soon))),
		"a server's certificate": a.ClientConfig(ok(a.Server("orders"))),
		"another server":         stranger.ClientConfig(ok(a.Client("orders", soon))),
		"clear text":             nil,
	}
	for name, config := range refused {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Error(t, describe(within(t, 2*time.Second), connect(t, f, speaks(config)), "default"))
		})
	}
}

func TestInvalidServerCertificates(t *testing.T) {
	t.Parallel()
	a, ok := authority(t), must(t)
	f := conntest.Run(t, conntest.Options{TLS: a.ServerConfig(ok(a.ServerUntil(time.Now().Add(-time.Minute))), false)})
	c := connect(t, f, speaks(a.ClientConfig(nil)))
	says := func(text string) func() bool {
		return func() bool {
			err := describe(within(t, unanswered), c, "default")
			return err != nil && strings.Contains(err.Error(), text)
		}
	}
	require.Eventually(t, says("expired"), limit, time.Millisecond)
	f.SetTLS(a.ServerConfig(ok(a.Server("temporal.example")), false))
	require.Eventually(t, says("127.0.0.1 because it doesn't contain any IP SANs"), limit, time.Millisecond)
	f.SetTLS(a.ServerConfig(ok(a.Server()), false))
	awaitAnswer(t, c)
}

func TestTLSRotation(t *testing.T) {
	t.Parallel()
	old, next, ok := authority(t), authority(t), must(t)
	f := conntest.Run(t, conntest.Options{TLS: old.ServerConfig(ok(old.Server()), false)})
	before, after := connect(t, f, speaks(old.ClientConfig(nil))), connect(t, f, speaks(next.ClientConfig(nil)))
	awaitAnswer(t, before)
	f.SetTLS(next.ServerConfig(ok(next.Server()), false))
	require.NoError(t, describe(within(t, limit), before, "default"), "open connections are not affected")
	awaitAnswer(t, after)
	f.CutConnections()
	require.Error(t, describe(within(t, unanswered), before, "default"))
	awaitAnswer(t, after)

	f.SetTLS(nil)
	f.CutConnections()
	awaitAnswer(t, connect(t, f))
}

func TestCertificateFiles(t *testing.T) {
	t.Parallel()
	a, ok := authority(t), must(t)
	f := conntest.Run(t, conntest.Options{TLS: a.ServerConfig(ok(a.Server()), true)})
	folder := t.TempDir()
	rootFile, err := a.Write(folder, "ca")
	require.NoError(t, err)
	var serials []string
	for range 2 {
		certFile, keyFile, err := ok(a.Client("orders", time.Now().Add(time.Minute))).Write(folder, "client")
		require.NoError(t, err)
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		require.NoError(t, err)
		require.Equal(t, "orders", pair.Leaf.Subject.CommonName)
		serials = append(serials, pair.Leaf.SerialNumber.String())
		root, err := os.ReadFile(rootFile)
		require.NoError(t, err)
		pool := x509.NewCertPool()
		require.True(t, pool.AppendCertsFromPEM(root))
		awaitAnswer(t, connect(t, f, speaks(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}})))
	}
	require.NotEqual(t, serials[0], serials[1])
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, files, 3, "no temporary file is left")

	_, err = a.Write(folder+"/missing", "ca")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, _, err = ok(a.Server()).Write(folder+"/missing", "server")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Package proxytest has servers that programs behind a proxy try to reach, for tests of their networks.
package proxytest

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/netguard"
	"github.com/signalbox-dev/signalbox/internal/sandbox/proxy"
)

// Servers are servers on the loopback interface.
type Servers struct {
	// Site answers requests over HTTP with `answer to METHOD PATH`, Echo answers a text with `echo TEXT`.
	Site, Echo string
	// Platform is a service of the platform, as Temporal.
	Platform string
	// Open permits the loopback interface, and Closed does not. Both refuse Platform.
	Open, Closed *proxy.Proxy
}

// Start starts the servers until the end of a test.
func Start(t *testing.T) Servers {
	t.Helper()
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "answer to "+r.Method+" "+r.URL.Path) // the program closed the connection
	}))
	t.Cleanup(site.Close)
	echo, platform := listen(), listen()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			text, _ := io.ReadAll(c) // what was read is answered
			_, _ = c.Write([]byte("echo " + string(text)))
			_ = c.Close()
		}
	}()
	s := Servers{Site: site.Listener.Addr().String(), Echo: echo.Addr().String(), Platform: platform.Addr().String()}
	with := func(networks ...netip.Prefix) *proxy.Proxy {
		return proxy.New(proxy.Options{Guard: netguard.New(networks), Refused: []string{"localhost:" + Port(t, s.Platform)}})
	}
	s.Open = with(netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))
	s.Closed = with()
	return s
}

// Port returns the port of an address.
func Port(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	return port
}

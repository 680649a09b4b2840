package httpcall_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/httpcall"
)

func requireBlocked(t *testing.T, err error) flow.CallFailure {
	t.Helper()
	f := failureOf(t, err)
	require.Equal(t, flow.CategoryRefused, f.Category, f.Error.Detail)
	require.Equal(t, dsl.ErrorTypeAuthorization, f.Error.Type)
	require.Equal(t, http.StatusForbidden, f.Error.Status)
	return f
}

func TestGuardRejectsAddressesThatAreNotPublic(t *testing.T) {
	t.Parallel()
	for _, host := range []string{
		"127.0.0.1", "localhost", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.100.100.200",
		"168.63.129.16", "0.0.0.0", "0.1.2.3", "192.0.0.192", "198.18.0.1", "203.0.113.9", "224.0.0.1", "240.0.0.1",
		"255.255.255.255", "[::1]", "[::]", "[fe80::1]", "[fd00:ec2::254]", "[fc00::1]", "[ff02::1]", "[::ffff:127.0.0.1]",
		"[::127.0.0.1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::1]", "[2002:7f00:1::]", "[2001::1]", "[2001:db8::1]",
		"[fec0::1]",
	} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			c := httpcall.New(httpcall.Options{})
			t.Cleanup(c.Close)
			_, err := c.Call(t.Context(), get("http://"+host+":1/"))
			require.Contains(t, requireBlocked(t, err).Error.Detail, "calls.allow_private")
		})
	}
}

func TestGuardAllowsConfiguredNetworksOnly(t *testing.T) {
	t.Parallel()
	url := origin(t, func(http.ResponseWriter, *http.Request) {})
	for network, allowed := range map[string]bool{
		"127.0.0.0/8": true, "127.0.0.2/32": false, "10.0.0.0/8": false, "::1/128": false} {
		c := httpcall.New(httpcall.Options{AllowPrivate: []netip.Prefix{netip.MustParsePrefix(network)}})
		t.Cleanup(c.Close)
		_, err := c.Call(t.Context(), get(url))
		if allowed {
			require.NoError(t, err)
			continue
		}
		requireBlocked(t, err)
	}
}

func TestGuardChecksRedirections(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	inner := origin(t, func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	// The same machine under an address that is not allowed.
	inner = strings.Replace(inner, "127.0.0.1", "127.0.0.2", 1)
	outer := origin(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, inner, http.StatusFound) })
	c := httpcall.New(httpcall.Options{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	t.Cleanup(c.Close)
	r := get(outer)
	r.Redirect = true
	_, err := c.Call(t.Context(), r)
	requireBlocked(t, err)
	require.False(t, reached.Load())
}

func TestProxiesOfTheEnvironmentAreIgnored(t *testing.T) {
	proxy := origin(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	t.Setenv("HTTP_PROXY", proxy)
	_, err := newCaller(t).Call(t.Context(), get("http://no..name/"))
	require.Equal(t, "Name not resolved", failureOf(t, err).Error.Title)
}

func TestRedirections(t *testing.T) {
	t.Parallel()
	foreign := origin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, r.Header.Get("X-Api-Key"), r.Header.Get("Accept"))
	})
	url := origin(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/here":
			http.Redirect(w, r, "/end", http.StatusFound)
		case "/there":
			http.Redirect(w, r, foreign, http.StatusTemporaryRedirect)
		case "/file":
			http.Redirect(w, r, "ftp://example.com/", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/unchanged":
			w.WriteHeader(http.StatusNotModified)
		case "/end":
			w.Header().Set("Content-Type", "text/plain")
			_, _ = fmt.Fprintf(w, "%s %s", r.Method, r.Header.Get("X-Api-Key"))
		}
	})
	call := func(t *testing.T, path string, redirect bool) (flow.HTTPResponse, error) {
		r := get(url + path)
		r.Redirect, r.Output = redirect, flow.OutputResponse
		r.Headers = map[string]string{"X-Api-Key": "k", "Accept": "text/plain"}
		return newCaller(t).Call(t.Context(), r)
	}

	t.Run("an error unless asked for", func(t *testing.T) {
		t.Parallel()
		_, err := call(t, "/here", false)
		require.Equal(t, http.StatusFound, failureOf(t, err).Error.Status)
	})
	t.Run("followed", func(t *testing.T) {
		t.Parallel()
		res, err := call(t, "/here", true)
		require.NoError(t, err)
		require.Equal(t, `"GET k"`, string(res.Content))
		require.Equal(t, url+"/end", res.Request.URI)
	})
	t.Run("another origin gets no headers", func(t *testing.T) {
		t.Parallel()
		res, err := call(t, "/there", true)
		require.NoError(t, err)
		require.Equal(t, `"GET  text/plain"`, string(res.Content))
	})
	t.Run("a result without a Location", func(t *testing.T) {
		t.Parallel()
		res, err := call(t, "/unchanged", true)
		require.NoError(t, err)
		require.Equal(t, http.StatusNotModified, res.StatusCode)
	})
	t.Run("not to other schemes", func(t *testing.T) {
		t.Parallel()
		_, err := call(t, "/file", true)
		require.Contains(t, requireBlocked(t, err).Error.Detail, `scheme "ftp"`)
	})
	t.Run("not without a limit", func(t *testing.T) {
		t.Parallel()
		_, err := call(t, "/loop", true)
		f := failureOf(t, err)
		require.Equal(t, dsl.ErrorTypeCommunication, f.Error.Type)
		require.Equal(t, http.StatusBadGateway, f.Error.Status)
		require.Equal(t, "Too many redirects", f.Error.Title)
		require.Contains(t, f.Error.Detail, "more than 10 times")
		require.Equal(t, flow.CategoryTransport, f.Category)
	})
}

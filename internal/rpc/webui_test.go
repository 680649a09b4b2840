package rpc_test

import (
	"io"
	"net"
	"net/http"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/rpc"
	"github.com/signalbox-dev/signalbox/internal/webui"
)

// withUI adds a small web UI to a server.
func withUI(t *testing.T) func(*rpc.Options) {
	t.Helper()
	ui, err := webui.New(fstest.MapFS{
		"index.html": {Data: []byte(
			`<!doctype html><title>Run Studio</title><meta name="csp-nonce" content="__CSP_NONCE__">`)},
		"assets/app-1.js": {Data: []byte("let a=1")},
	})
	require.NoError(t, err)
	return func(o *rpc.Options) { o.UI = ui }
}

const browser = "text/html,application/xhtml+xml,*/*;q=0.8"

func TestBrowsersGetTheUIAndProgramsTheListOfPaths(t *testing.T) {
	t.Parallel()
	p := start(t, withUI(t))
	page := p.do("GET", "/", "", "Accept", browser)
	require.Equal(t, http.StatusOK, page.status)
	require.Contains(t, page.body, "Run Studio")
	require.Equal(t, "Accept", page.header.Get("Vary"))
	for _, accept := range []string{"*/*", "application/json", ""} {
		require.Contains(t, p.do("GET", "/", "", "Accept", accept).body, "/readyz", accept)
	}
	require.Contains(t, p.do("GET", "/problems", "").body, "Run Studio")
	require.Equal(t, "let a=1", p.do("GET", "/assets/app-1.js", "").body)
	head := p.do("HEAD", "/p/shop/runs", "", "Accept", browser)
	require.Equal(t, http.StatusOK, head.status)
	require.Empty(t, head.body)
	for _, path := range []string{"/index.html", "/nowhere", "/p", "/problem/1"} {
		page := p.do("GET", path, "", "Accept", browser)
		require.Equal(t, http.StatusNotFound, page.status, path)
		require.Contains(t, page.body, "Run Studio", "a browser gets the frame, which says that there is no such page")
		p.do("GET", path, "", "Accept", "application/json").fails(404, "UNIMPLEMENTED")
	}
	for _, path := range []string{"/assets/missing.js", "/v1/p"} {
		require.Equal(t, "application/json", p.do("GET", path, "", "Accept", browser).header.Get("Content-Type"), path)
		p.do("GET", path, "", "Accept", browser).fails(404, "UNIMPLEMENTED")
	}
	p.do("POST", "/sign-in", "{}").fails(405, "UNIMPLEMENTED")
	p.do("DELETE", "/assets/app-1.js", "").fails(405, "UNIMPLEMENTED")
	require.Contains(t, start(t, nil).do("GET", "/", "", "Accept", browser).body, "/readyz", "a server without the UI")
}

func TestUIPagesCannotBeFramedOrReused(t *testing.T) {
	t.Parallel()
	p := start(t, withUI(t))
	policies := map[string]bool{}
	for _, path := range []string{"/", "/p/shop/runs", "/sign-in", "/sign-in"} {
		page := p.do("GET", path, "", "Accept", browser)
		policy := page.header.Get("Content-Security-Policy")
		require.Contains(t, policy, "frame-ancestors 'none'")
		require.NotContains(t, policy, "unsafe")
		require.NotContains(t, policy, "*")
		require.Equal(t, "no-store", page.header.Get("Cache-Control"),
			"a cached page would have a nonce that was used before")
		require.Equal(t, "nosniff", page.header.Get("X-Content-Type-Options"))
		require.False(t, policies[policy], "each response has another nonce")
		policies[policy] = true
	}
}

func TestUINeedsNoTokenButItsDataDoes(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, withUI(t))
	for _, path := range []string{"/p/shop/runs", "/problems", "/sign-in", "/assets/app-1.js"} {
		require.Equal(t, http.StatusOK, g.do("GET", path, "").status, path)
	}
	g.do("GET", "/assets/missing.js", "").fails(404, "UNIMPLEMENTED")
	for _, path := range []string{"/v1/projects", "/v1/nowhere", "/metrics", "/signalbox.v1.RunService/GetRun"} {
		require.Equal(t, http.StatusUnauthorized, g.do("GET", path, "", "Accept", browser).status, path)
	}
	for _, path := range []string{"/nowhere", "/p", "/index.html"} {
		require.Equal(t, http.StatusUnauthorized, g.do("GET", path, "").status, path)
		require.Equal(t, http.StatusNotFound, g.do("GET", path, "", "Accept", browser).status, path)
	}
	_, viewer := g.token(map[string]auth.Role{"shop": auth.Viewer})
	require.Equal(t, http.StatusOK, g.do("GET", "/v1/projects", "", viewer...).status)
}

// The paths are sent as they are: Go's client would clean them. No form of an open path leads to a method of the API or
// to a file.
func TestNoPathOfTheUILeadsElsewhere(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, withUI(t))
	for _, path := range []string{
		"/assets/../v1/projects", "/p/../v1/projects", "/p/..%2f..%2fv1/projects", "/p/%2e%2e/v1/projects",
		"/assets/..%2findex.html", "/assets/%2e%2e/index.html",
		"/assets/../../etc/passwd", "/assets/..%5c..%5cetc%5cpasswd", "//assets/app-1.js", "/p//../v1/projects",
		"/assets/%00", "/p/../metrics",
	} {
		for _, method := range []string{"GET", "POST", "CONNECT"} {
			conn, err := net.Dial("tcp", g.server.Addr().String())
			require.NoError(t, err)
			_, err = io.WriteString(conn,
				method+" "+path+" HTTP/1.1\r\nHost: "+g.server.Addr().String()+
					"\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
			require.NoError(t, err)
			answer, err := io.ReadAll(conn)
			require.NoError(t, err)
			require.NoError(t, conn.Close())
			require.NotContains(t, string(answer), "nextPageToken", "%s %s", method, path)
			require.NotContains(t, string(answer), "\"projects\"", "%s %s", method, path)
			require.NotContains(t, string(answer), "root:", "%s %s", method, path)
		}
	}
}

func TestForeignPagesCannotReachTheLocalUI(t *testing.T) {
	t.Parallel()
	p := start(t, withUI(t))
	for _, path := range []string{"/", "/p/shop/runs", "/sign-in", "/assets/app-1.js"} {
		p.do("GET", path, "", "Host", "signalbox.example", "Accept", browser).connectFails(403, "permission_denied",
			"FOREIGN_HOST")
		p.do("GET", path, "", "Origin", "http://evil.example").connectFails(403, "permission_denied", "CROSS_ORIGIN")
	}
	require.Equal(t, http.StatusOK,
		p.do("GET", "/p/shop/runs", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate").status,
		"a link may lead here")
}

package webui_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/webui"
)

const script = "/assets/index-3fA9.js"

// built has a document, a script that compresses well, a small font, and an icon.
func built() fstest.MapFS {
	return fstest.MapFS{
		".keep": {},
		"index.html": {
			Data: []byte(`<!doctype html><meta name="csp-nonce" content="__CSP_NONCE__"><script nonce="__CSP_NONCE__" src="` +
				script + `"></script>`)},
		"assets/index-3fA9.js.gz": {Data: compress(bytes.Repeat([]byte("let a=1;"), 1000))},
		"assets/f-1.woff2":        {Data: []byte("wOF2")},
		"favicon.svg":             {Data: []byte("<svg/>")},
		"assets/.secret-config":   {Data: []byte("x")},
	}
}

// compress compresses a file as the build does.
func compress(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(data) // a buffer accepts everything
	_ = w.Close()
	return b.Bytes()
}

func serve(t *testing.T, files fstest.MapFS) http.Handler {
	t.Helper()
	ui, err := webui.New(files)
	require.NoError(t, err)
	return ui.Handler(http.NotFoundHandler())
}

func get(h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.URL.Path = path
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func pages() []string {
	return []string{
		"/", "/p/shop/runs", "/p/shop/runs/01a1", "/problems", "/dispatchers", "/dispatchers/shop", "/workers", "/system",
		"/projects",
		"/projects/shop", "/access", "/sign-in",
	}
}

func TestEveryPageIsTheDocumentWithItsOwnNonce(t *testing.T) {
	t.Parallel()
	h, seen := serve(t, built()), map[string]bool{}
	for _, path := range append(pages(), "/") {
		w := get(h, path)
		require.Equal(t, http.StatusOK, w.Code, path)
		require.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
		require.Empty(t, w.Header().Get("ETag"))
		nonce := regexp.MustCompile(`'nonce-([^']{20,})'`).FindStringSubmatch(w.Header().Get("Content-Security-Policy"))
		require.Len(t, nonce, 2, path)
		require.False(t, seen[nonce[1]], "a nonce is used once")
		seen[nonce[1]] = true
		require.Equal(t, "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-"+nonce[1]+
			"'; img-src 'self' data:; font-src 'self'; "+
			"connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'", w.Header().
			Get("Content-Security-Policy"))
		require.Equal(t, 2, strings.Count(w.Body.String(), `"`+nonce[1]+`"`))
		require.NotContains(t, w.Body.String(), "__CSP_NONCE__")
	}
}

// The paths of pages are those of the router in the browser: a page that is loaded again is found.
func TestPagesOfTheRouterAreServed(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../ui/src/shell/router.tsx")
	require.NoError(t, err)
	ui, err := webui.New(built())
	require.NoError(t, err)
	routes := regexp.MustCompile(`top\('([^']+)'`).FindAllStringSubmatch(string(source), -1)
	require.Greater(t, len(routes), 10)
	for _, route := range routes {
		path := strings.ReplaceAll(route[1], "$", "a-")
		require.True(t, ui.Serves(path), path)
	}
}

func TestLicencesAreServedAsText(t *testing.T) {
	t.Parallel()
	ui, err := webui.New(fstest.MapFS{})
	require.NoError(t, err)
	require.True(t, ui.Serves("/licences.txt"), "also by a program without pages, and without a token")
	h := serve(t, fstest.MapFS{})
	w := get(h, "/licences.txt")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
	require.Contains(t, w.Body.String(), "google.golang.org/grpc v")
	require.Contains(t, w.Body.String(), "Permission is hereby granted")
	require.Equal(t, "gzip", get(h, "/licences.txt", "Accept-Encoding", "gzip").Header().Get("Content-Encoding"))
}

func TestServesOnlyItsPaths(t *testing.T) {
	t.Parallel()
	ui, err := webui.New(built())
	require.NoError(t, err)
	for _, path := range append(pages(), script, "/favicon.svg", "/assets/missing.js") {
		require.True(t, ui.Serves(path), path)
	}
	for _, path := range []string{
		"/p", "/problem", "/problems/1", "/workers/1", "/index.html", "/.keep", "/assets", "/v1/projects", "/metrics",
		"/signalbox.v1.RunService/GetRun",
		"//", "", "/v1/p/", "/favicon.ico",
	} {
		require.False(t, ui.Serves(path), path)
	}
}

func TestMissingFilesAndTraversalAreNotFound(t *testing.T) {
	t.Parallel()
	h := serve(t, built())
	for _, path := range []string{
		"/assets/", "/assets/missing.js", "/assets/../index.html", "/assets/../webui.go", "/assets/../../webui.go",
		"/assets/./index-3fA9.js",
		"/assets//index-3fA9.js", "/assets/%2e%2e/index.html", "/assets/..\\index.html", "/assets/\x00",
		"/assets/.secret-config", "/.keep",
	} {
		require.Equal(t, http.StatusNotFound, get(h, path).Code, path)
	}
}

func TestFilesWithHashesNeverExpire(t *testing.T) {
	t.Parallel()
	h := serve(t, built())
	w := get(h, script)
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "public, max-age=31536000, immutable", w.Header().Get("Cache-Control"))
	require.Equal(t, "text/javascript; charset=utf-8", w.Header().Get("Content-Type"))
	require.Equal(t, 8000, w.Body.Len())
	require.Contains(t, w.Header().Get("Content-Security-Policy"), "script-src 'self'",
		"a worker's policy is that of its script")
	require.Equal(t, "font/woff2", get(h, "/assets/f-1.woff2").Header().Get("Content-Type"))
}

func TestOtherFilesAreRevalidated(t *testing.T) {
	t.Parallel()
	h := serve(t, built())
	w := get(h, "/favicon.svg")
	require.Equal(t, "no-cache", w.Header().Get("Cache-Control"))
	require.Equal(t, "image/svg+xml", w.Header().Get("Content-Type"))
	tag := w.Header().Get("ETag")
	require.NotEmpty(t, tag)
	require.Equal(t, http.StatusNotModified, get(h, "/favicon.svg", "If-None-Match", tag).Code)
	changed := built()
	changed["favicon.svg"].Data = []byte("<svg></svg>")
	require.Equal(t, http.StatusOK, get(serve(t, changed), "/favicon.svg", "If-None-Match", tag).Code)
}

func TestCompressedFilesAreSentToClientsThatAcceptThem(t *testing.T) {
	t.Parallel()
	h := serve(t, built())
	plain := get(h, script)
	require.Empty(t, plain.Header().Get("Content-Encoding"))
	require.Equal(t, "Accept-Encoding", plain.Header().Get("Vary"))
	for accepted, compressed := range map[string]bool{
		"gzip": true, "br, GZIP;q=0.5": true, "deflate,gzip": true, "gzip;q=0": false, "gzip; q=0.0": false, "br": false,
		"gzipped": false, "gzip;q=x": false,
	} {
		w := get(h, script, "Accept-Encoding", accepted)
		require.Equal(t, compressed, w.Header().Get("Content-Encoding") == "gzip", accepted)
		require.Equal(t, compressed, w.Header().Get("ETag") != plain.Header().Get("ETag"), accepted)
		if !compressed {
			continue
		}
		require.Less(t, w.Body.Len(), 200)
		r, err := gzip.NewReader(w.Body)
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, plain.Body.Bytes(), text)
	}
	require.Empty(t, get(h, "/favicon.svg", "Accept-Encoding", "gzip").Header().Get("Content-Encoding"),
		"the build did not compress it")
	require.Equal(t, http.StatusNotFound, get(h, script+".gz").Code)
}

func TestProgramWithoutUISaysHowToBuildIt(t *testing.T) {
	t.Parallel()
	h := serve(t, fstest.MapFS{".keep": {}})
	w := get(h, "/")
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), "make ui")
	require.Contains(t, w.Body.String(), "20.19")
	require.NotContains(t, w.Body.String(), "<script")
	require.True(t, strings.HasPrefix(w.Header().Get("Content-Security-Policy"), "default-src 'none'; "))
	require.Equal(t, http.StatusNotFound, get(h, "/problems").Code)
	require.Contains(t, get(h, "/problems").Body.String(), "make ui")
	require.Equal(t, http.StatusNotFound, get(h, script).Code)
}

// The embedded folder can be read whether or not the UI was built.
func TestEmbeddedFolderIsServed(t *testing.T) {
	t.Parallel()
	ui, err := webui.New(webui.Built())
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, get(ui.Handler(http.NotFoundHandler()), "/").Code)
	require.False(t, ui.Serves("/.keep"))
}

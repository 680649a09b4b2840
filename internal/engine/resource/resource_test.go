package resource_test

import (
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/httpcall"
	"github.com/signalbox-dev/signalbox/internal/engine/resource"
	"github.com/signalbox-dev/signalbox/internal/secret"
)

// secrets has the secret "token" of the project "shop".
type secrets struct{}

func (secrets) Resolve(_ context.Context, project, name string) (secret.Value, error) {
	if project == "shop" && name == "token" {
		return secret.Value("s3cret"), nil
	}
	return nil, secret.ErrMissing
}

func serve(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/f.yaml", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("set: {x: 1}")) })
	mux.HandleFunc("/empty", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/f.yaml", http.StatusFound)
	})
	mux.HandleFunc("/metadata", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusFound)
	})
	mux.HandleFunc("/unchanged", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) })
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(strings.Repeat("x", dsl.MaxResourceBytes+1)))
	})
	mux.HandleFunc("/private", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s3cret" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func newLoader(t *testing.T, allowed ...netip.Prefix) *resource.Loader {
	t.Helper()
	caller := httpcall.New(httpcall.Options{AllowPrivate: allowed, Secrets: secrets{}})
	t.Cleanup(caller.Close)
	return resource.New(caller)
}

func TestLoad(t *testing.T) {
	t.Parallel()
	base, loader := serve(t), newLoader(t, netip.MustParsePrefix("127.0.0.0/8"))
	for path, want := range map[string]string{"/f.yaml": "set: {x: 1}", "/moved": "set: {x: 1}", "/empty": ""} {
		content, err := loader.Load(t.Context(), "shop", dsl.Reference{URI: base + path})
		require.NoError(t, err, path)
		require.Equal(t, want, string(content), path)
	}
	for path, want := range map[string]string{
		"/none":      "answered 404: 404 page not found",
		"/metadata":  "the address 169.254.169.254 is not public",
		"/unchanged": "answered 304",
		"/large":     "answer over the size limit of 4194304 bytes",
		"/private":   "answered 401",
	} {
		_, err := loader.Load(t.Context(), "shop", dsl.Reference{URI: base + path})
		require.ErrorContains(t, err, want, path)
		require.NotContains(t, err.Error(), "retryable", "the words of Temporal do not help authors")
	}
	_, err := newLoader(t).Load(t.Context(), "shop", dsl.Reference{URI: base + "/f.yaml"})
	require.ErrorContains(t, err, "is not public")
}

// TestAddressesThatAreNotPublicAreNotRead has the spellings of an address that is not public.
func TestAddressesThatAreNotPublicAreNotRead(t *testing.T) {
	t.Parallel()
	var read atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { read.Add(1) }))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	loader := newLoader(t)
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0", "[::]", "127.1", "2130706433",
		"0x7f000001", "0177.0.0.1", "[64:ff9b::7f00:1]", "127.0.0.1.",
	} {
		_, err := loader.Load(t.Context(), "shop", dsl.Reference{URI: "http://" + host + ":" + port + "/f.yaml"})
		require.Error(t, err, host)
	}
	for _, uri := range []string{
		"http://10.0.0.1/", "http://192.168.0.1/", "http://172.16.0.1/", "http://169.254.169.254/", "http://100.64.0.1/",
		"http://[fd00::1]/", "http://[fe80::1]/", "http://[fd00:ec2::254]/",
	} {
		_, err := loader.Load(t.Context(), "shop", dsl.Reference{URI: uri})
		require.ErrorContains(t, err, "is not public", uri)
	}
	for _, uri := range []string{"file:///etc/passwd", "gopher://example.com/", "//example.com/a"} {
		_, err := loader.Load(t.Context(), "shop", dsl.Reference{URI: uri})
		require.Error(t, err, uri)
	}
	require.Zero(t, read.Load())
}

// TestRedirectsCarryNoCredentials: another origin gets neither the credentials of the endpoint nor a request without an
// end.
func TestRedirectsCarryNoCredentials(t *testing.T) {
	t.Parallel()
	var headers []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers = append(headers, r.Header.Get("Authorization")+r.Header.Get("Cookie"))
		_, _ = w.Write([]byte("set: {}"))
	}))
	t.Cleanup(other.Close)
	var first []string
	followed := 0
	mux := http.NewServeMux()
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		first = append(first, r.Header.Get("Authorization"))
		w.Header().Set("Set-Cookie", "a=b")
		http.Redirect(w, r, other.URL+"/f.yaml", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/circle", func(w http.ResponseWriter, r *http.Request) {
		followed++
		http.Redirect(w, r, "/circle", http.StatusFound)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	loader := newLoader(t, netip.MustParsePrefix("127.0.0.0/8"))
	content, err := loader.Load(t.Context(), "shop", authenticated(t, server.URL+"/away"))
	require.NoError(t, err)
	require.Equal(t, "set: {}", string(content))
	require.Equal(t, []string{"Bearer s3cret"}, first)
	require.Equal(t, []string{""}, headers)
	_, err = loader.Load(t.Context(), "shop", dsl.Reference{URI: server.URL + "/circle"})
	require.ErrorContains(t, err, "redirected more than 10 times")
	require.Equal(t, 11, followed)
}

// TestTextsOfDescriptionsAreReadLikeOthers: a description names no other way to an address.
func TestTextsOfDescriptionsAreReadLikeOthers(t *testing.T) {
	t.Parallel()
	resources := dsl.NewResources()
	resources.Add("https://shop.example/openapi.yaml", []byte(`
openapi: 3.0.3
paths: {/a: {post: {operationId: a, requestBody: {content: {application/json: {schema: {$ref: 'http://169.254.169.254/s.yaml#/A'}}}}}}}
`))
	_, _ = dsl.Parse([]byte(`
document: {dsl: 1.0.3, namespace: shop, name: order, version: 1.0.0}
do: [{a: {call: openapi, with: {document: {endpoint: 'https://shop.example/openapi.yaml'}, operationId: a}}}]
`), dsl.WithResources(resources))
	missing := resources.Missing()
	require.Len(t, missing, 1)
	require.Nil(t, missing[0].Authentication)
	_, err := newLoader(t).Load(t.Context(), "shop", missing[0])
	require.ErrorContains(t, err, "the address 169.254.169.254 is not public")
}

// caller records its request.
type caller struct{ request flow.HTTPRequest }

func (c *caller) Call(_ context.Context, r flow.HTTPRequest) (flow.HTTPResponse, error) {
	c.request = r
	return flow.HTTPResponse{StatusCode: http.StatusOK}, nil
}

func TestLoadIsBounded(t *testing.T) {
	t.Parallel()
	c := &caller{}
	_, err := resource.New(c).Load(t.Context(), "shop", dsl.Reference{URI: "https://shop.example/a"})
	require.NoError(t, err)
	require.Equal(t, 10*time.Second, c.request.Timeout)
	require.EqualValues(t, dsl.MaxResourceBytes, c.request.MaxResponseBytes)

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		_, _ = io.CopyN(packed, zeros{}, 8*dsl.MaxResourceBytes) // the reader has disconnected
		_ = packed.Close()
	}))
	t.Cleanup(server.Close)
	_, err = newLoader(t, netip.MustParsePrefix("127.0.0.0/8")).Load(t.Context(), "shop", dsl.Reference{URI: server.URL})
	require.ErrorContains(t, err, "answer over the size limit of 4194304 bytes")
}

// zeros has no end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestLoadAuthenticates(t *testing.T) {
	t.Parallel()
	base, loader := serve(t), newLoader(t, netip.MustParsePrefix("127.0.0.0/8"))
	reference := authenticated(t, base+"/private")
	_, err := loader.Load(t.Context(), "shop", reference)
	require.NoError(t, err)
	_, err = loader.Load(t.Context(), "other", reference)
	require.ErrorContains(t, err, "Secret not found")
}

// authenticated returns a reference with the token of the project.
func authenticated(t *testing.T, uri string) dsl.Reference {
	t.Helper()
	resources := dsl.NewResources()
	_, _ = dsl.Parse([]byte(`
document: {dsl: 1.0.3, namespace: shop, name: order, version: 1.0.0}
use: {secrets: [token]}
input:
  schema: {resource: {endpoint: {uri: '`+uri+`', authentication: {bearer: {token: '${ $secrets.token }'}}}}}
do: [{a: {set: {x: 1}}}]
`), dsl.WithResources(resources))
	missing := resources.Missing()
	require.Len(t, missing, 1)
	return missing[0]
}

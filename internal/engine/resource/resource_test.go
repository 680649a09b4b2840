package resource_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
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

func TestLoadAuthenticates(t *testing.T) {
	t.Parallel()
	base, loader := serve(t), newLoader(t, netip.MustParsePrefix("127.0.0.0/8"))
	resources := dsl.NewResources()
	_, _ = dsl.Parse([]byte(`
document: {dsl: 1.0.3, namespace: shop, name: order, version: 1.0.0}
use: {secrets: [token]}
input:
  schema: {resource: {endpoint: {uri: '`+base+`/private', authentication: {bearer: {token: '${ $secrets.token }'}}}}}
do: [{a: {set: {x: 1}}}]
`), dsl.WithResources(resources))
	missing := resources.Missing()
	require.Len(t, missing, 1)
	_, err := loader.Load(t.Context(), "shop", missing[0])
	require.NoError(t, err)
	_, err = loader.Load(t.Context(), "other", missing[0])
	require.ErrorContains(t, err, "Secret not found")
}

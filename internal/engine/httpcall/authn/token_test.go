package authn_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/engine/httpcall/authn"
)

// TestDiscoveryIsChecked checks that a client secret is sent only where the authority's document may send it: never
// from https to http, and never for another issuer.
func TestDiscoveryIsChecked(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	answer := func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = fmt.Fprint(w, `{"access_token":"granted"}`)
	}
	plain := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(plain.Close)
	document := ""
	mux := http.NewServeMux()
	mux.HandleFunc("/token", answer)
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, document)
	})
	authority := httptest.NewTLSServer(mux)
	t.Cleanup(authority.Close)
	for name, tc := range map[string]struct {
		document, issuers,
		refusal string
	}{ //nolint:paralleltest // they share the document
		"honest":       {document: `{"issuer":"AUTHORITY","token_endpoint":"AUTHORITY/token"}`},
		"with a slash": {document: `{"issuer":"AUTHORITY/","token_endpoint":"AUTHORITY/token"}`},
		"no issuer":    {document: `{"token_endpoint":"AUTHORITY/token"}`},
		"named issuer": {document: `{"issuer":"https://accounts.example","token_endpoint":"AUTHORITY/token"}`,
			issuers: `,"issuers":["https://accounts.example"]`},
		"another issuer": {document: `{"issuer":"https://accounts.example","token_endpoint":"AUTHORITY/token"}`,
			refusal: `names the issuer "https://accounts.example"`},
		"http": {document: `{"issuer":"AUTHORITY","token_endpoint":"PLAIN/token"}`,
			refusal: "not an https address"},
		"http in upper case": {document: `{"issuer":"AUTHORITY","token_endpoint":"PLAINUPPER/token"}`,
			refusal: "not an https address"},
		"no endpoint": {document: `{}`, refusal: "names no token_endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			document = replace(tc.document, "PLAINUPPER", "HTTP"+plain.URL[len("http"):], "PLAIN", plain.URL, "AUTHORITY",
				authority.URL)
			asked.Store(0)
			method, err := authn.NewTokens(authority.Client()).Method("shop", "oidc", json.RawMessage(
				`{"authority":"`+authority.URL+`","grant":"client_credentials","client":{"id":"me","secret":"planted"}`+tc.issuers+
					`}`))
			require.NoError(t, err)
			req := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
			err = method.Authorize(t.Context(), req)
			if tc.refusal == "" {
				require.NoError(t, err)
				require.Equal(t, "Bearer granted", req.Header.Get("Authorization"))
				return
			}
			var refused *authn.RefusedError
			require.ErrorAs(t, err, &refused)
			require.Contains(t, refused.What, tc.refusal)
			require.Zero(t, asked.Load(), "no endpoint received the client's secret")
		})
	}
}

func replace(text string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(text) }

package authn_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/engine/httpcall/authn"
)

// asked is an authority that keeps the form of the last request for a token, and never lets a token be cached.
func asked(t *testing.T) (*httptest.Server, *url.Values) {
	t.Helper()
	var form url.Values
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm() // a form that cannot be parsed has no values
		form = r.PostForm
		_, _ = io.WriteString(w, `{"access_token":"granted"}`)
	}))
	t.Cleanup(server.Close)
	return server, &form
}

// authorize requests a token with the properties of a client.
func authorize(t *testing.T, authority *httptest.Server, client map[string]any) (authn.Method, error) {
	t.Helper()
	client["id"] = "me"
	properties, err := json.Marshal(map[string]any{
		"authority": authority.URL, "grant": "client_credentials", "client": client})
	require.NoError(t, err)
	method, err := authn.NewTokens(authority.Client()).Method("shop", "oauth2", properties)
	require.NoError(t, err)
	return method, method.Authorize(t.Context(), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
}

func encode(t *testing.T, kind string, der []byte, err error) string {
	t.Helper()
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// TestAssertions checks the JWT of a client with its public key, as an authority does.
func TestAssertions(t *testing.T) {
	t.Parallel()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	ecKey, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	edPublic, edKey, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	pkcs8 := func(key crypto.PrivateKey) string {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		return encode(t, "PRIVATE KEY", der, err)
	}
	sec1, err := x509.MarshalECPrivateKey(ecKey)
	require.NoError(t, err)
	jwk, err := json.Marshal(jose.JSONWebKey{Key: rsaKey, KeyID: "k1", Algorithm: "PS256"})
	require.NoError(t, err)
	const secret = "a secret that is long enough for HS256"
	for name, tt := range map[string]struct {
		authentication, secret, kid string
		algorithm                   jose.SignatureAlgorithm
		verify                      any
	}{
		"secret":    {"client_secret_jwt", secret, "", jose.HS256, []byte(secret)},
		"PKCS 8":    {"private_key_jwt", pkcs8(rsaKey), "", jose.RS256, rsaKey.Public()},
		"PKCS 1":    {"private_key_jwt", encode(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey), nil), "", jose.RS256, rsaKey.Public()},
		"SEC 1":     {"private_key_jwt", encode(t, "EC PRIVATE KEY", sec1, nil), "", jose.ES384, ecKey.Public()},
		"Ed25519":   {"private_key_jwt", pkcs8(edKey), "", jose.EdDSA, edPublic},
		"JWK":       {"private_key_jwt", string(jwk), "k1", jose.PS256, rsaKey.Public()},
		"JWK alone": {"private_key_jwt", replace(string(jwk), `"alg":"PS256",`, ""), "k1", jose.RS256, rsaKey.Public()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			authority, form := asked(t)
			method, err := authorize(t, authority, map[string]any{"authentication": tt.authentication, "secret": tt.secret})
			require.NoError(t, err)
			require.Equal(t, "urn:ietf:params:oauth:client-assertion-type:jwt-bearer", form.Get("client_assertion_type"))
			require.Equal(t, "me", form.Get("client_id"))
			require.False(t, form.Has("client_secret"))
			text := form.Get("client_assertion")
			require.Contains(t, method.Credentials(), text, "it is redacted")
			token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{tt.algorithm})
			require.NoError(t, err)
			require.Equal(t, tt.kid, token.Headers[0].KeyID)
			var claims jwt.Claims
			require.NoError(t, token.Claims(tt.verify, &claims))
			require.NoError(t, claims.Validate(jwt.Expected{Issuer: "me", Subject: "me",
				AnyAudience: jwt.Audience{authority.URL + "/oauth2/token"}, Time: time.Now()}))
			require.NotEmpty(t, claims.ID)
			first := claims.ID
			_, err = authorize(t, authority, map[string]any{"authentication": tt.authentication, "secret": tt.secret})
			require.NoError(t, err)
			token, err = jwt.ParseSigned(form.Get("client_assertion"), []jose.SignatureAlgorithm{tt.algorithm})
			require.NoError(t, err)
			require.NoError(t, token.Claims(tt.verify, &claims))
			require.NotEqual(t, first, claims.ID, "no assertion is used twice")
		})
	}
}

// TestGivenAssertion: the assertion of a policy is sent as it is.
func TestGivenAssertion(t *testing.T) {
	t.Parallel()
	authority, form := asked(t)
	for _, authentication := range []string{"client_secret_jwt", "private_key_jwt"} {
		_, err := authorize(t, authority, map[string]any{"authentication": authentication, "assertion": "a.b.c"})
		require.NoError(t, err)
		require.Equal(t, "a.b.c", form.Get("client_assertion"))
	}
}

// TestUnusableKeys: an error says what is missing, and quotes nothing of a key.
func TestUnusableKeys(t *testing.T) {
	t.Parallel()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	public, err := json.Marshal(jose.JSONWebKey{Key: rsaKey.Public()})
	require.NoError(t, err)
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(p224)
	for name, tt := range map[string]struct{ authentication, secret, want string }{
		"short secret": {"client_secret_jwt", "planted", "cannot sign an assertion with HS256"},
		"none":         {"private_key_jwt", "", "requires the client's secret or its assertion"},
		"no key":       {"private_key_jwt", "planted", "must be a private key in PEM or as a JWK"},
		"broken PEM":   {"private_key_jwt", encode(t, "PRIVATE KEY", []byte("planted"), nil), "must be a private key in PEM"},
		"broken JWK":   {"private_key_jwt", `{"kty":"RSA","n":"planted"}`, "must be a private key in PEM"},
		"public JWK":   {"private_key_jwt", string(public), "must be a private key in PEM"},
		"curve":        {"private_key_jwt", encode(t, "PRIVATE KEY", der, err), "ECDSA with P-256, P-384 or P-521"},
		"algorithm": {"private_key_jwt", replace(string(mustJWK(t, rsaKey)), `"kty"`, `"alg":"ES256","kty"`),
			"cannot sign an assertion with ES256"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			authority, form := asked(t)
			_, err := authorize(t, authority, map[string]any{"authentication": tt.authentication, "secret": tt.secret})
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), "planted")
			require.Nil(t, *form, "nothing was sent")
		})
	}
}

func mustJWK(t *testing.T, key *rsa.PrivateKey) []byte {
	t.Helper()
	text, err := json.Marshal(jose.JSONWebKey{Key: key})
	require.NoError(t, err)
	return text
}

package httpcall_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/httpcall"
	"github.com/signalbox-dev/signalbox/internal/secret"
)

const (
	planted = "pl4nted/secret+value \"quoted\""
	token   = "tok-0123456789"
	mark    = "⟦secrets.token⟧"
)

// fakeSecrets provides the secrets of the project shop.
type fakeSecrets map[string]string

func (f fakeSecrets) Resolve(_ context.Context, project, name string) (secret.Value, error) {
	value, ok := f[name]
	switch {
	case name == "broken":
		return nil, errors.New("the provider is sealed")
	case project != "shop" || !ok:
		return nil, fmt.Errorf("the secret %q: %w", name, secret.ErrMissing)
	}
	return secret.Value(value), nil
}

func secretsCaller(t *testing.T) *httpcall.Caller {
	t.Helper()
	c := httpcall.New(httpcall.Options{AllowPrivate: loopback(), Secrets: fakeSecrets{
		"token": token, "planted": planted, "db": `{"user":"me","password":"p4ssw0rd-long","port":5432}`, "list": "[1]",
		"client": `{"authority":"AUTHORITY","grant":"client_credentials"}`,
	}})
	t.Cleanup(c.Close)
	return c
}

// using returns a request of the project shop with secrets in it.
func using(url string, secrets map[string]flow.Secret) flow.HTTPRequest {
	r := get(url)
	r.Method, r.Project, r.Secrets = http.MethodPost, "shop", secrets
	return r
}

// echo responds with all parts of the request, in one of several ways.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("X-Echo", r.Header.Get("X-Token"))
	w.Header().Set("Content-Type", r.URL.Query().Get("as"))
	status := http.StatusOK
	if r.URL.Query().Get("fail") != "" {
		status = http.StatusTeapot
	}
	w.WriteHeader(status)
	if r.URL.Query().Get("as") == "application/json" {
		all, err := json.Marshal(map[string]any{
			"body": string(body), "header": r.Header, "uri": r.RequestURI, r.Header.Get("X-Token"): 1,
			"b64": base64.StdEncoding.EncodeToString(append([]byte("x:"), body...)),
		})
		if err == nil {
			_, _ = w.Write(all)
		}
		return
	}
	_, _ = fmt.Fprintf(w, "%s %s %v", r.RequestURI, body, r.Header)
}

func TestSecretsReplaceTheirMarks(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body []byte
	at := origin(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		got = r
	})
	r := using(at+"/"+mark+"?a=1", map[string]flow.Secret{
		mark: {Name: "token"}, "⟦secrets.planted⟧": {Name: "planted"},
		"⟦secrets.db.port⟧": {Name: "db", Members: []string{"port"}},
	})
	r.Headers = map[string]string{"X-Token": "Bearer " + mark, "X-Other": "⟦secrets.other⟧"}
	r.Query = map[string]string{"q": "⟦secrets.planted⟧"}
	r.Body = json.RawMessage(`{"a":["` + mark +
		`",{"b":"<⟦secrets.planted⟧>"}],"n":12345678901234567890,"port":"⟦secrets.db.port⟧"}`)
	_, err := secretsCaller(t).Call(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, "/"+token, got.URL.Path)
	require.Equal(t, "1", got.URL.Query().Get("a"))
	require.Equal(t, planted, got.URL.Query().Get("q"))
	require.Equal(t, "Bearer "+token, got.Header.Get("X-Token"))
	require.Equal(t, "⟦secrets.other⟧", got.Header.Get("X-Other"), "what is no mark is text")
	require.JSONEq(t, `{"a":["tok-0123456789",{"b":"<pl4nted/secret+value \"quoted\">"}],"n":12345678901234567890,"port":"5432"}`, string(body))
}

func TestEchoedSecretsAreRedacted(t *testing.T) {
	t.Parallel()
	at := origin(t, echo)
	for _, as := range []string{"application/json", "text/plain", "application/octet-stream"} {
		for _, output := range []string{flow.OutputContent, flow.OutputRaw, flow.OutputResponse} {
			for _, fail := range []string{"", "yes"} {
				t.Run(as+" "+output+fail, func(t *testing.T) {
					t.Parallel()
					r := using(at+"/x?fail="+fail+"&as="+as, map[string]flow.Secret{
						mark: {Name: "token"}, "⟦secrets.planted⟧": {Name: "planted"},
					})
					r.Output = output
					r.Headers = map[string]string{"X-Token": mark, "X-Both": mark + "⟦secrets.planted⟧"}
					r.Query = map[string]string{"q": "⟦secrets.planted⟧"}
					r.Body = json.RawMessage(`["⟦secrets.planted⟧","` + mark + `"]`)
					res, err := secretsCaller(t).Call(t.Context(), r)
					require.Equal(t, fail != "", err != nil)
					all, failed := json.Marshal(res)
					require.NoError(t, failed)
					said := string(all)
					if err != nil {
						said += err.Error() + fmt.Sprint(failureOf(t, err))
					}
					var content string
					if json.Unmarshal(res.Content, &content) == nil {
						plain, _ := base64.StdEncoding.DecodeString(content)
						said += string(plain)
					}
					escaped, _ := json.Marshal(planted)
					for _, leak := range []string{
						token, "pl4nted", url.QueryEscape(planted), strings.Trim(string(escaped), `"`),
						base64.StdEncoding.EncodeToString([]byte(token)), "0123456789",
					} {
						require.NotContains(t, said, leak)
					}
					if err == nil || as != "application/octet-stream" { // a failure does not quote it
						require.Contains(t, said, "⟦redacted⟧")
					}
				})
			}
		}
	}
}

// TestSecretURL uses a secret as the whole address of a request. The result shows nothing of it.
func TestSecretURL(t *testing.T) {
	t.Parallel()
	at, err := url.Parse(origin(t, func(http.ResponseWriter, *http.Request) {}))
	require.NoError(t, err)
	host := at.Host
	for name, tc := range map[string]struct {
		secret string
		query  map[string]string
	}{
		"user and password":  {"http://user-plain:pass-plain@" + host + "/hook/path-plain?key=query-plain", nil},
		"with a fragment":    {"http://" + host + "/hook/path-plain?key=query-plain#fragment-plain", nil},
		"path to be escaped": {"http://" + host + `/hook/path-plain "[x]`, nil},
		"with more to it": {"http://user-plain:pass-plain@" + host + "/hook/path-plain?key=query-plain",
			map[string]string{"a": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := httpcall.New(httpcall.Options{AllowPrivate: loopback(), Secrets: fakeSecrets{"token": tc.secret}})
			t.Cleanup(c.Close)
			r := using(mark, map[string]flow.Secret{mark: {Name: "token"}})
			r.Output, r.Query = flow.OutputResponse, tc.query
			res, err := c.Call(t.Context(), r)
			require.NoError(t, err)
			require.NotContains(t, res.Request.URI, "-plain")
		})
	}
}

func TestUnavailableSecrets(t *testing.T) {
	t.Parallel()
	at := origin(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	for name, tc := range map[string]struct {
		secret flow.Secret
		auth   *flow.Authentication
		other  bool
		title  string
		status int
		says   string
	}{
		"missing": {secret: flow.Secret{Name: "gone"}, title: "Secret not found", status: 400,
			says: `the secret "gone": not found`},
		"of another project": {secret: flow.Secret{Name: "token"}, other: true, title: "Secret not found", status: 400,
			says: `"token"`},
		"provider fails": {secret: flow.Secret{Name: "broken"}, title: "Secret not available", status: 503,
			says: "the provider is sealed"},
		"no member": {secret: flow.Secret{Name: "db", Members: []string{"pass"}}, title: "Secret not found",
			status: 400, says: `no member "pass"`},
		"an object": {secret: flow.Secret{Name: "db"}, title: "Secret not usable", status: 400,
			says: "name one of its members: password, port, user"},
		"a member of text": {secret: flow.Secret{Name: "token", Members: []string{"x"}}, title: "Secret not usable",
			status: 400, says: `"token" is not a JSON object`},
		"too deep": {secret: flow.Secret{Name: "db", Members: []string{"user", "x"}}, title: "Secret not usable",
			status: 400, says: `"db.user" of a secret is not text`},
		"no policy": {auth: &flow.Authentication{Scheme: "basic", Secret: "token"}, title: "Secret not usable",
			status: 400, says: "not a JSON object with the properties of the authentication basic"},
		"half a policy": {auth: &flow.Authentication{Scheme: "bearer", Secret: "db"}, title: "Secret not usable",
			status: 400, says: "lacks a token"},
		"no such scheme": {auth: &flow.Authentication{Scheme: "magic", Secret: "db"}, title: "Secret not usable", status: 400,
			says: `unknown authentication "magic"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := using(at+"/x", nil)
			r.Authentication = tc.auth
			if tc.secret.Name != "" {
				r.Secrets = map[string]flow.Secret{mark: tc.secret}
			}
			if tc.other {
				r.Project = "other"
			}
			r.Headers = map[string]string{"X-Token": mark}
			_, err := secretsCaller(t).Call(t.Context(), r)
			f := failureOf(t, err)
			require.Equal(t, flow.CategoryRefused, f.Category)
			kind, status := dsl.ErrorTypeConfiguration, tc.status
			if tc.title == "Secret not found" {
				kind, status = dsl.ErrorTypeAuthorization, 403
			}
			require.Equal(t, []any{kind, status, tc.title}, []any{f.Error.Type, f.Error.Status, f.Error.Title})
			require.Contains(t, f.Error.Detail, tc.says)
			require.NotContains(t, f.Error.Detail, token)
			require.NotContains(t, f.Error.Detail, "p4ssw0rd")
		})
	}
}

func TestSecretsInFailuresAreRedacted(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{
		"no URL":      "http://[" + mark,
		"no host":     mark + "://x",
		"not there":   "http://" + mark + ".invalid/" + mark,
		"no header":   "http://x/",
		"wrong port":  "http://x:" + mark + "/",
		"unreachable": "http://127.0.0.1:1/" + mark,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := using(address, map[string]flow.Secret{mark: {Name: "token"}})
			if name == "no header" {
				r.Headers = map[string]string{"X": mark + "\n"}
			}
			_, err := secretsCaller(t).Call(t.Context(), r)
			require.Error(t, err)
			require.NotContains(t, err.Error()+fmt.Sprint(failureOf(t, err)), token)
		})
	}
}

func TestRedirectsCarryNoSecrets(t *testing.T) {
	t.Parallel()
	var seen atomic.Value
	other := origin(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen.Store(fmt.Sprint(r.Header, r.RequestURI, string(body)))
	})
	for status, refused := range map[int]bool{http.StatusFound: false, http.StatusTemporaryRedirect: true} {
		at := origin(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other+"/there", status) })
		r := using(at+"/?k="+mark, map[string]flow.Secret{mark: {Name: "token"}})
		r.Redirect, r.Body = true, json.RawMessage(`"`+mark+`"`)
		r.Headers = map[string]string{"X-Token": mark}
		r.Authentication = &flow.Authentication{Scheme: "bearer", Properties: json.RawMessage(`{"token":"` + mark + `"}`)}
		seen.Store("")
		_, err := secretsCaller(t).Call(t.Context(), r)
		require.NotContains(t, seen.Load(), token)
		if !refused {
			require.NoError(t, err)
			continue
		}
		require.Contains(t, failureOf(t, err).Error.Detail, "a redirect would carry a request with secrets in it to")
		require.Empty(t, seen.Load())
	}
}

func TestAuthentication(t *testing.T) {
	t.Parallel()
	var tokens atomic.Int32
	authority := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			_, _ = fmt.Fprintf(w, `{"token_endpoint":"http://%s/token"}`, r.Host)
		case "/token", "/oauth2/token":
			user, password, basic := r.BasicAuth()
			if basic && (user != "id" || password != token) || !basic &&
				(r.FormValue("client_id") != "id" || r.FormValue("client_secret") != token) {
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, `{"error":"invalid_client","error_description":"`+r.FormValue("client_secret")+`"}`)
				return
			}
			_, _ = fmt.Fprintf(w, `{"access_token":"granted-%s-%d","expires_in":3600}`, r.FormValue("scope"), tokens.Add(1))
		}
	}))
	t.Cleanup(authority.Close)
	at := origin(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Authorization"))
	})
	policy := func(more string) string {
		return `{"authority":"` + authority.URL +
			`","grant":"client_credentials","scopes":["read"],"client":{"id":"id","secret":"` + mark + `"` + more + `}}`
	}
	for name, tc := range map[string]struct {
		scheme, properties, got string
		status                  int
	}{
		"basic":        {"basic", `{"username":"me","password":"` + mark + `"}`, "Basic ⟦redacted⟧", 0},
		"bearer":       {"bearer", `{"token":"` + mark + `"}`, "Bearer ⟦redacted⟧", 0},
		"oauth2":       {"oauth2", policy(""), "Bearer ⟦redacted⟧", 0},
		"oauth2 basic": {"oauth2", policy(`,"authentication":"client_secret_basic"`), "Bearer ⟦redacted⟧", 0},
		"oidc":         {"oidc", policy(""), "Bearer ⟦redacted⟧", 0},
		"wrong client": {"oauth2", strings.Replace(policy(""), `"id":"id"`, `"id":"x"`, 1), "answered 401: invalid_client",
			401},
		"no key": {"oauth2", policy(`,"authentication":"private_key_jwt"`), "must be a private key", 400},
		"no grant": {"oauth2", strings.Replace(policy(""), "client_credentials", "authorization_code", 1),
			"cannot be used by a workflow", 400},
		"no properties": {"oidc", `{"grant":"password"}`, "lacks a authority", 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := using(at, map[string]flow.Secret{mark: {Name: "token"}})
			r.Authentication = &flow.Authentication{Scheme: tc.scheme, Properties: json.RawMessage(tc.properties)}
			res, err := secretsCaller(t).Call(t.Context(), r)
			if tc.status > 0 {
				f := failureOf(t, err)
				require.Equal(t, tc.status, f.Error.Status)
				require.Contains(t, f.Error.Detail, tc.got)
				require.NotContains(t, f.Error.Detail, token)
				return
			}
			require.NoError(t, err)
			require.JSONEq(t, `"`+tc.got+`"`, string(res.Content))
		})
	}
}

// A token that was cached may have been revoked: the call is sent once more with a fresh one. A fresh token that is
// rejected is the answer.
func TestTokensAreCachedUntilTheyAreRejected(t *testing.T) {
	t.Parallel()
	var asked, called atomic.Int32
	authority := origin(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"access_token":"granted-%d","expires_in":3600}`, asked.Add(1))
	})
	at := origin(t, func(w http.ResponseWriter, r *http.Request) {
		called.Add(1)
		if r.Header.Get("Authorization") == "Bearer granted-1" && r.URL.Path == "/revoked" || r.URL.Path == "/refuse" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = io.WriteString(w, r.Header.Get("Authorization"))
	})
	c := secretsCaller(t)
	authenticated := func(path string) flow.HTTPRequest {
		r := using(at+path, nil)
		r.Authentication = &flow.Authentication{
			Scheme: "oauth2", Properties: json.RawMessage(`{"authority":"` + authority + `","grant":"client_credentials"}`)}
		return r
	}
	call := func(path string) (flow.HTTPResponse, error) { return c.Call(t.Context(), authenticated(path)) }
	requests := func(tokens, calls int32) {
		t.Helper()
		require.Equal(t, []int32{tokens, calls}, []int32{asked.Load(), called.Swap(0)})
	}
	for range 2 {
		_, err := call("/a")
		require.NoError(t, err)
	}
	requests(1, 2)
	res, err := call("/revoked")
	require.NoError(t, err)
	require.NotContains(t, string(res.Content), "granted", "both tokens are redacted")
	require.Len(t, res.Attempts, 2)
	require.Equal(t, http.StatusUnauthorized, res.Attempts[0].Status)
	requests(2, 2)
	_, err = call("/refuse") // with the cached token, then with a fresh one
	require.Equal(t, http.StatusUnauthorized, failureOf(t, err).Error.Status)
	requests(3, 2)
	_, err = secretsCaller(t).Call(t.Context(), authenticated("/refuse")) // the token is fresh
	require.Equal(t, http.StatusUnauthorized, failureOf(t, err).Error.Status)
	requests(4, 1)
}

// TestDigest checks the response to a challenge against RFC 7616, 3.9.1, with a server that computes it from its
// challenge.
func TestDigest(t *testing.T) {
	t.Parallel()
	for _, challenge := range []string{
		`Basic realm="x", Digest realm="a \"b\", c", nonce="n1", qop="auth,auth-int", algorithm=MD5, opaque="o"`,
		`Digest realm="r", nonce="n2", algorithm=SHA-256, qop="auth"`,
		`Digest realm="r", nonce="n3"`,
		`Digest realm="r", nonce="n4", algorithm=SHA-256-sess, qop=auth`,
	} {
		var requests atomic.Int32
		at := origin(t, func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			body, _ := io.ReadAll(r.Body)
			if given := r.Header.Get("Authorization"); given == "" || !validDigest(given, r.Method, "me", token) {
				w.Header().Set("WWW-Authenticate", challenge)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			_, _ = w.Write(body)
		})
		r := using(at+"/x?y=1", map[string]flow.Secret{mark: {Name: "token"}})
		r.Body = json.RawMessage(`{"a":1}`)
		r.Authentication = &flow.Authentication{
			Scheme: "digest", Properties: json.RawMessage(`{"username":"me","password":"` + mark + `"}`)}
		res, err := secretsCaller(t).Call(t.Context(), r)
		require.NoError(t, err, challenge)
		require.JSONEq(t, `"{\"a\":1}"`, string(res.Content))
		require.EqualValues(t, 2, requests.Load())

		r.Secrets = nil // another password
		_, err = secretsCaller(t).Call(t.Context(), r)
		require.Equal(t, http.StatusUnauthorized, failureOf(t, err).Error.Status)
	}
}

package httpcall_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/engine/httpcall"
)

// callerWith returns a caller of one project with the given secrets.
func callerWith(t *testing.T, secrets fakeSecrets) *httpcall.Caller {
	t.Helper()
	c := httpcall.New(httpcall.Options{AllowPrivate: loopback(), Secrets: secrets})
	t.Cleanup(c.Close)
	return c
}

// said returns all that a call returns, as text.
func said(t *testing.T, res flow.HTTPResponse, err error) string {
	t.Helper()
	all, failed := json.Marshal(res)
	require.NoError(t, failed)
	if err != nil {
		return string(all) + err.Error() + fmt.Sprint(failureOf(t, err))
	}
	return string(all)
}

// TestEveryPartOfASecretIsRedacted checks that a service which repeats any value of a secret discloses none, whatever
// its role.
func TestEveryPartOfASecretIsRedacted(t *testing.T) {
	t.Parallel()
	const account = `{"username":"planted-user-1","password":"","note":{"list":["planted-note-2",471147114711]}}`
	at := origin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/digest" && r.Header.Get("Authorization") == "" {
			w.Header().Set("WWW-Authenticate", `Digest realm="here", qop="auth", nonce="once", algorithm=SHA-256`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("X-User", "planted-user-1")
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/fails" {
			w.WriteHeader(http.StatusConflict)
		}
		_, _ = io.WriteString(w, `{"user":"planted-user-1","note":"planted-note-2","n":471147114711,"planted-user-1":1}`)
	})
	for name, change := range map[string]func(*flow.HTTPRequest){
		"basic": func(r *flow.HTTPRequest) { r.Authentication = &flow.Authentication{Scheme: "basic", Secret: "account"} },
		"basic fails": func(r *flow.HTTPRequest) {
			r.Authentication = &flow.Authentication{Scheme: "basic", Secret: "account"}
			r.URL += "/fails"
		},
		"digest": func(r *flow.HTTPRequest) {
			r.Authentication = &flow.Authentication{Scheme: "digest", Secret: "account"}
			r.URL += "/digest"
		},
		"a member": func(r *flow.HTTPRequest) {
			r.Secrets = map[string]flow.Secret{mark: {Name: "account", Members: []string{"password"}}}
			r.Headers = map[string]string{"X-Token": mark}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := using(at, nil)
			r.Output = flow.OutputResponse
			change(&r)
			res, err := callerWith(t, fakeSecrets{"account": account}).Call(t.Context(), r)
			shown := said(t, res, err)
			require.Contains(t, shown, "⟦redacted⟧")
			for _, leak := range []string{"planted", "4711"} {
				require.NotContains(t, shown, leak)
			}
		})
	}
}

// TestAddressWithSecretIsNotQuoted checks addresses that cannot be read or reached: no error quotes a part of them, nor
// does one of an authority.
func TestAddressWithSecretIsNotQuoted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ secret, url string }{
		"port":            {"http://host:planted-1/x", mark},
		"part of port":    {"planted-1:x", "http://host:" + mark + "/x"},
		"scheme":          {"planted-1x://host/x", mark},
		"escape":          {"http://host/planted%zz-1", mark},
		"host":            {"http://planted-host.invalid/x", mark},
		"part of host":    {"Planted-host.sub", "http://a" + mark + ".invalid/x"},
		"brackets":        {"http://[planted-host/x", mark},
		"refused address": {"http://10.47.11.99/x", mark},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := callerWith(t, fakeSecrets{
				"token": tc.secret, "policy": `{"grant":"client_credentials","authority":"` + tc.secret + `","client":{"id":"x"}}`})
			requests := []flow.HTTPRequest{using(tc.url, map[string]flow.Secret{mark: {Name: "token"}})}
			authorized := using("http://127.0.0.1:1", nil)
			authorized.Authentication = &flow.Authentication{Scheme: "oauth2", Secret: "policy"}
			if tc.url == mark {
				requests = append(requests, authorized)
				authorized.Authentication = &flow.Authentication{Scheme: "oidc", Secret: "policy"}
				requests = append(requests, authorized)
				authorized.Authentication = &flow.Authentication{
					Scheme: "oidc", Properties: json.RawMessage(`{"grant":"client_credentials","authority":"` + mark + `"}`)}
				authorized.Secrets = map[string]flow.Secret{mark: {Name: "token"}}
				requests = append(requests, authorized)
			}
			for _, r := range requests {
				res, err := c.Call(t.Context(), r)
				require.Error(t, err)
				shown := strings.ToLower(said(t, res, err))
				for _, leak := range []string{"planted", "47.11", "zz-1", "sub.invalid"} {
					require.NotContains(t, shown, leak)
				}
			}
		})
	}
}

// TestTextsAreSearchedWhole checks a secret at the place where the text of a failure is cut, in a character set that
// has to be decoded first.
func TestTextsAreSearchedWhole(t *testing.T) {
	t.Parallel()
	const planted = "planted-in-a-text-47114711"
	for _, before := range []int{1000, 1020, 2020, 2030, 2040} {
		at := origin(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-16le")
			w.WriteHeader(http.StatusBadRequest)
			for _, unit := range utf16.Encode(
				[]rune(strings.Repeat("\t ", before/2) + "x" + planted + strings.Repeat("z", 3000))) {
				_, _ = w.Write([]byte{byte(unit), byte(unit >> 8)})
			}
		})
		r := using(at, map[string]flow.Secret{mark: {Name: "token"}})
		r.Headers = map[string]string{"X-Token": mark}
		res, err := callerWith(t, fakeSecrets{"token": planted}).Call(t.Context(), r)
		require.NotContains(t, said(t, res, err), "plante", before)
	}
}

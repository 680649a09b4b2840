package integration_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// The planted secrets, each from another provider or for another scheme, and the token that an authority issues for one
// of them.
const (
	plantedKey      = "planted-key-4711"
	plantedPassword = "planted-password-4712"
	plantedBearer   = "planted-bearer-4713"
	plantedDigest   = "planted-digest-4714"
	plantedClient   = "planted-client-4715"
	plantedAccess   = "planted-access-4716"
)

// echoOrigin is an origin that requires each scheme's credentials, and repeats all that it receives.
type echoOrigin struct {
	URL string

	mu      sync.Mutex
	arrived map[string]int
}

func newEchoOrigin(t *testing.T) *echoOrigin {
	t.Helper()
	p := &echoOrigin{arrived: map[string]int{}}
	server := httptest.NewServer(p)
	p.URL = server.URL
	t.Cleanup(server.Close)
	return p
}

func (p *echoOrigin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, password, _ := r.BasicAuth()
	given := r.Header.Get("Authorization")
	p.mu.Lock()
	for _, secret := range []string{
		plantedKey, plantedPassword, plantedBearer, plantedDigest, plantedClient, plantedAccess} {
		if strings.Contains(fmt.Sprint(r.RequestURI, string(body), r.Header, password), secret) {
			p.arrived[secret]++
		}
	}
	p.mu.Unlock()
	switch {
	case r.URL.Path == "/oauth2/token":
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, plantedAccess)
		return
	case r.URL.Path == "/digest" && !strings.HasPrefix(given, `Digest username="me"`):
		w.Header().Set("WWW-Authenticate", `Digest realm="here", qop="auth", nonce="once", algorithm=SHA-256`)
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/fail":
		w.WriteHeader(http.StatusConflict)
	}
	known := "" // the part of a call that the origin can derive although it was not sent
	switch {
	case r.URL.Path == "/digest":
		known = plantedDigest
	case strings.Contains(given, plantedAccess):
		known = plantedClient
	}
	_, _ = fmt.Fprintf(w, "%s %s %v %s %s", r.RequestURI, body, r.Header, password, known)
}

// providers returns the settings of all three, each with secrets of its own.
func providers(t *testing.T, authority string) (args, env []string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(dir+"/default", 0o700))
	require.NoError(t, os.WriteFile(dir+"/default/account",
		[]byte(`{"username":"me","password":"`+plantedPassword+`"}`+"\n"), 0o600))
	program := dir + "/program"
	require.NoError(t, os.WriteFile(program, []byte(`#!/bin/sh
echo "asked for $1 $2, which may be `+plantedBearer+`" >&2
case "$1 $2" in
"default bearer") echo '{"token":"`+plantedBearer+`"}' ;;
"default digest") echo '{"username":"me","password":"`+plantedDigest+`"}' ;;
"default client") echo '{"authority":"`+authority+`","grant":"client_credentials","client":{"id":"me","secret":"`+plantedClient+`"}}' ;;
*) exit 3 ;;
esac
`), 0o700))
	return []string{"--secrets-dir", dir, "--log-level", "debug"},
		[]string{"SIGNALBOX_SECRET_DEFAULT__KEY=" + plantedKey, "SIGNALBOX_SECRETS_COMMAND=" + program}
}

// secretCall calls the origin with a scheme's secret, and with others in all parts of a request.
func (p *echoOrigin) secretCall(name, method, path, scheme, secret string) string {
	body := map[string]string{
		"post": "              body: {p: '${ $secrets.account.password }', k: ['${ $secrets.key }']}\n"}[method]
	return fmt.Sprintf("  - %s:\n      try:\n        - call:\n            call: http\n            with:\n              "+
		"method: %s\n              output: response\n"+
		"              endpoint: {uri: '%s/%s', authentication: {%s: {use: %s}}}\n              headers: {X-Key: '${ "+
		"$secrets.key }'}\n"+
		"              query: {k: '${ \"x\" + $secrets.key }'}\n%s      catch: {as: error, do: [{told: {set: {e: '${ "+
		"$error }'}}}]}\n",
		name, method, p.URL, path, scheme, secret, body)
}

// Secrets are sent to an origin that repeats all that it receives, and must not appear in the platform's
// data and output.
func TestSecretsDoNotLeak(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		p := newEchoOrigin(t)
		args, env := providers(t, p.URL)
		temporal := platform.StartTemporal(t)
		s := platform.StartServer(t, platform.ServerOptions{Temporal: temporal.Address, Store: store, Args: args, Env: env})
		const use = "use: {secrets: [key, account, bearer, digest, client, gone]}\n"
		source := platform.Document("secret",
			p.secretCall("read", "get", "ok", "basic", "account")+p.secretCall("send", "post", "ok", "bearer", "bearer")+
				p.secretCall("answer", "get", "digest", "digest", "digest")+p.secretCall("fetch", "post", "ok", "oauth2", "client")+
				p.secretCall("refused", "post", "fail", "basic", "account"), use)
		published, err := s.Workflows.PublishWorkflow(t.Context(),
			connect.NewRequest(&signalboxv1.PublishWorkflowRequest{Project: platform.DefaultProject, Source: source}))
		require.NoError(t, err)
		require.Contains(t, protojson.Format(published.Msg), "gone")
		id := s.Start(t, published.Msg.GetWorkflow().GetName(), `{}`).GetId()
		ended := s.Await(t, id, soon, "completed")
		fails := s.Publish(t, platform.Document("fails", "  - call:\n      call: http\n      with:\n        method: post\n"+
			"        endpoint: {uri: '"+p.URL+
			"/fail', authentication: {oauth2: {use: client}}}\n        body: '${ $secrets.key }'\n", use))
		said := s.CLI(t, "run", "start", fails, "--wait").String()
		failed := s.AllRuns(t, fails, 1)[0]
		require.Equal(t, "failed", failed.GetStatus())
		for _, secret := range []string{plantedKey, plantedPassword, plantedBearer, plantedClient, plantedAccess} {
			require.Positive(t, p.arrived[secret], secret)
		}
		require.Equal(t, 2, p.arrived[plantedAccess], "the origin receives it once per run")

		shown := runOutput(t, s, id)
		require.Contains(t, shown, "⟦redacted⟧")
		requireUnplanted(t, "answers",
			said+shown+apiOutput(t, s, failed.GetId())+protojson.Format(ended)+protojson.Format(failed))
		_, err = s.Control(t.Context(), "cancel", failed.GetId(), "too late")
		require.Error(t, err)
		requireUnplanted(t, "an error",
			err.Error()+s.CLI(t, "run", "replay", failed.GetId(), "--reason", "x", "--version", "9.9.9").String())
		_, metrics, err := s.Get(t.Context(), "/metrics")
		require.NoError(t, err)
		requireUnplanted(t, "metrics", metrics)
		opened := ""
		for _, of := range []string{id, failed.GetId()} {
			requireUnplanted(t, "what Temporal shows", temporalOutput(t, temporal.Address, of))
			for _, history := range platform.Histories(t, platform.DialTemporal(t, temporal.Address), of) {
				for _, e := range history.GetEvents() {
					opened += e.String() // payloads as text
				}
			}
		}
		require.Contains(t, opened, "secrets.key")
		requireUnplanted(t, "what Temporal has sealed", opened)
		s.Interrupt()
		_, stopped := s.WaitFor(soon)
		require.True(t, stopped)
		requireUnplanted(t, "the log", s.Output())
		requireUnplanted(t, "the database", databaseContents(t, store))
		requireUnplanted(t, "Temporal", files(t, temporal.File))
	})
}

// requireUnplanted searches a text for the secrets, and for their ends.
func requireUnplanted(t *testing.T, where, text string) {
	t.Helper()
	require.NotEmpty(t, text, where)
	for _, planted := range []string{
		plantedKey, plantedPassword, plantedBearer, plantedDigest, plantedClient, plantedAccess} {
		for _, part := range []string{planted, strings.TrimPrefix(planted, "planted")} {
			if at := strings.Index(text, part); at >= 0 {
				t.Errorf("%s of %s is in %s: …%q…", part, planted, where, text[max(0, at-300):min(len(text), at+100)])
			}
		}
	}
}

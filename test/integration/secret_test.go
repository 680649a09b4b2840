package integration_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// TestSecretsAreNowhere plants two secrets, has them sent to an origin that repeats all it gets, and looks for them in what the platform
// keeps and says.
func TestSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	const key, password = "planted-key-4711", "planted-password-4712"
	var arrived []string
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, given, _ := r.BasicAuth()
		arrived = append(arrived, r.Header.Get("X-Key"), given)
		if r.URL.Path == "/fail" {
			w.WriteHeader(http.StatusConflict)
		}
		_, _ = fmt.Fprintf(w, "%s %s %v %s", r.RequestURI, body, r.Header, given)
	}))
	t.Cleanup(origin.Close)
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(dir+"/default", 0o700))
	require.NoError(t, os.WriteFile(dir+"/default/account", []byte(`{"username":"me","password":"`+password+`"}`+"\n"), 0o600))
	temporal, store := platform.StartTemporal(t), platform.SQLite(t)
	s := platform.StartServer(t, platform.ServerOptions{
		Temporal: temporal.Address, Store: store, Args: []string{"--secrets-dir", dir},
		Env: []string{"SIGNALBOX_SECRET_DEFAULT__KEY=" + key},
	})
	call := func(name, method, path string) string {
		return fmt.Sprintf("  - %s:\n      try:\n        - call:\n            call: http\n            with:\n              method: %s\n              output: response\n"+
			"              endpoint: {uri: '%s/%s', authentication: {basic: {use: account}}}\n              headers: {X-Key: '${ $secrets.key }'}\n"+
			"              query: {k: '${ \"x\" + $secrets.key }'}\n%s      catch: {as: error, do: [{told: {set: {e: '${ $error }'}}}]}\n",
			name, method, origin.URL, path, map[string]string{"post": "              body: {p: '${ $secrets.account.password }', k: ['${ $secrets.key }']}\n"}[method])
	}
	source := platform.Document("secret", call("read", "get", "ok")+call("send", "post", "ok")+call("refused", "post", "fail"), "use: {secrets: [key, account, gone]}\n")
	published, err := s.Workflows.PublishWorkflow(t.Context(), connect.NewRequest(&signalboxv1.PublishWorkflowRequest{Project: platform.DefaultProject, Source: source}))
	require.NoError(t, err)
	require.Contains(t, protojson.Format(published.Msg), "gone")
	r := s.Start(t, published.Msg.GetWorkflow().GetName(), `{}`)
	ended := s.Await(t, r.GetId(), soon, "completed")
	require.Equal(t, []string{key, password, key, password, key, password}, arrived)

	said := protojson.Format(ended)
	for _, step := range s.Steps(t, r.GetId()) {
		said += protojson.Format(step)
	}
	require.Contains(t, said, "⟦redacted⟧")
	for _, history := range platform.Histories(t, platform.DialTemporal(t, temporal.Address), r.GetId()) {
		for _, e := range history.GetEvents() {
			said += e.String() // payloads as text
		}
	}
	require.Contains(t, said, "secrets.key")
	s.Interrupt()
	_, stopped := s.WaitFor(soon)
	require.True(t, stopped)
	files, err := filepath.Glob(store.DSN + "*")
	require.NoError(t, err)
	for _, file := range append(files, temporal.File) {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		said += string(content)
	}
	said += s.Output()
	for _, leak := range []string{key, password, "4711", "4712"} {
		require.NotContains(t, said, leak)
	}
}

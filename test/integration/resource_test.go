package integration_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// A version has the texts that its document referred to when it was published: files beside it, web resources and
// functions of the project. The loss of an origin stops no run, and a changed text needs a new version.
func TestVersionsKeepTheirResources(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("set: {web: '${ .n + 1 }'}"))
		}))
		defer web.Close()
		folder := t.TempDir()
		put := func(name, content string) string {
			path := filepath.Join(folder, name)
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
			return path
		}
		catalog := put("price.yaml", "set: {n: '${ .web * 2 }'}")
		require.Equal(t, platform.ExitOK, s.CLI(t, "function", "publish", "price:1.0.0", catalog).Code)
		local := put("local.yaml", "set: {n: '${ .n * 10 }'}")
		source := platform.Document("resources", "  - web: {call: '"+web.URL+"/f.yaml', with: {n: 1}}\n"+
			"  - price: {call: 'price:1.0.0@default'}\n  - local: {call: local.yaml}\n")
		document := put("w.yaml", source)
		published := s.CLI(t, "workflow", "publish", document)
		require.Equal(t, platform.ExitOK, published.Code, published.String())
		name := strings.Fields(published.Stdout)[1]

		listed := s.CLI(t, "workflow", "show", name, "--resources")
		require.Equal(t, platform.ExitOK, listed.Code, listed.String())
		for _, uri := range []string{web.URL + "/f.yaml", "price:1.0.0@default", "local.yaml"} {
			require.Contains(t, listed.Stdout, uri)
		}
		require.Contains(t, s.CLI(t, "function", "show", "price").Stdout, name+" 1.0.0")
		require.NoError(t, os.WriteFile(local, []byte("set: {n: 0}"), 0o600))
		requireOneLine(t, s.CLI(t, "workflow", "publish", document), platform.ExitConflict, "another content of local.yaml")

		web.Close()
		require.Equal(t, platform.ExitOK, s.CLI(t, "function", "delete", "price", "--yes").Code)
		require.JSONEq(t, `{"n": 40}`, s.Await(t, s.Start(t, name, "").GetId(), soon, "completed").GetOutput().GetJson())
	})
}

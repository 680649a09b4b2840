package integration_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// tokenServer is a server that requires tokens and speaks TLS, without Temporal: permissions do not depend on it.
type tokenServer struct {
	url, folder string
	store       platform.Store
	client      *http.Client
	env         []string
	process     *platform.Process
}

func startTokenServer(t *testing.T, store platform.Store, env ...string) *tokenServer {
	t.Helper()
	g := &tokenServer{folder: t.TempDir(), store: store}
	g.certify(t, 1)
	address := platform.Address(platform.FreePort(t))
	g.url = "https://" + address
	settings := slices.Concat([]string{
		"SIGNALBOX_LISTEN=" + address, "SIGNALBOX_AUTH_MODE=tokens", "SIGNALBOX_TEMPORAL_ADDRESS=" +
			platform.Address(platform.FreePort(t)),
		"SIGNALBOX_LISTEN_TLS_CERT_FILE=" + g.file("tls.crt"), "SIGNALBOX_LISTEN_TLS_KEY_FILE=" + g.file("tls.key"),
		"SIGNALBOX_STORE_DRIVER=" + store.Driver, "SIGNALBOX_STORE_DSN=" + store.DSN,
		platform.WithKeys(t),
	}, platform.RedisFor(store), env)
	g.env = append([]string{"SIGNALBOX_ADDRESS=" + g.url, "SIGNALBOX_CA_FILE=" + g.file("tls.crt")}, settings...)
	g.process = platform.StartProcess(t, "server", platform.ServerBinary(t), settings, []string{"server"})
	g.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
	}}
	t.Cleanup(g.client.CloseIdleConnections)
	require.Eventually(t, func() bool {
		res, err := g.client.Get(g.url + "/livez")
		if err == nil {
			_ = res.Body.Close()
		}
		return err == nil && res.StatusCode == http.StatusOK
	}, soon, 20*time.Millisecond)
	return g
}

func (g *tokenServer) file(name string) string { return filepath.Join(g.folder, name) }

// certify writes a self-signed certificate with this number, which is an authority itself.
func (g *tokenServer) certify(t *testing.T, number int64) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(number), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	for name, block := range map[string]*pem.Block{
		"tls.key": {Type: "PRIVATE KEY", Bytes: secret}, "tls.crt": {Type: "CERTIFICATE", Bytes: der}} {
		require.NoError(t, os.WriteFile(g.file(name), pem.EncodeToMemory(block), 0o600))
	}
}

// cli runs a command with a token.
func (g *tokenServer) cli(t *testing.T, token string, args ...string) platform.Result {
	t.Helper()
	return platform.Run(t, platform.Command{
		Binary: platform.ServerBinary(t), Args: args, Env: append(slices.Clone(g.env), "SIGNALBOX_TOKEN="+token)})
}

// create makes a token and returns it.
func (g *tokenServer) create(t *testing.T, by, name string, roles ...string) string {
	t.Helper()
	args := []string{"token", "create", "--name", name}
	for _, role := range roles {
		args = append(args, "--role", role)
	}
	if by == "" {
		args = append(args, "--bootstrap")
	}
	r := g.cli(t, by, args...)
	require.Equal(t, platform.ExitOK, r.Code, r.String())
	return strings.TrimSpace(r.Stdout)
}

// ask makes a request and returns the status and the reason of a refusal.
func (g *tokenServer) ask(t *testing.T, method, path, token, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, g.url+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	if len(header) > 0 {
		req.Header.Set("Content-Type", header[0])
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := g.client.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, res.Body.Close()) }()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	found := regexp.MustCompile(`"reason": ?"([A-Z_]+)"`).FindSubmatch(text)
	if found == nil {
		return res.StatusCode, ""
	}
	return res.StatusCode, string(found[1])
}

// permission is a row of the reference page.
type permission struct{ method, role, where string }

// permissions reads the reference page.
func permissions(t *testing.T) (rows []permission) {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/access.md")
	require.NoError(t, err)
	row := regexp.MustCompile("(?m)^\\| `([A-Za-z]+Service/[A-Za-z]+)` \\| (any token|`[a-z]+`(?: and `[a-z]+`)*) \\| " +
		"([^|]*) \\|")
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		rows = append(rows, permission{m[1], strings.Trim(m[2], "`"), strings.TrimSpace(m[3])})
	}
	require.Greater(t, len(rows), 40)
	return rows
}

// allowed reports whether the page's words permit a role in the project "shop", or in all. A method that requires two
// roles is permitted to a single one only if that is admin.
func (p permission) allowed(role string, everywhere bool) bool {
	has := role == "admin" || role == p.role || p.role == "viewer" && role != ""
	switch {
	case p.role == "any token":
		return true
	case p.where == "in all projects":
		return has && everywhere
	}
	return has
}

// streams reports whether the method answers with a stream, whose errors are inside it.
func (p permission) streams() bool {
	return strings.Contains(p.method, "/Watch") || strings.Contains(p.method, "/Export")
}

// The test compares a real server with the reference page: every method for every role, and the other rules of access.
func TestPermissionsMatchReference(t *testing.T) {
	t.Parallel()
	needPostgres(t)
	g := startTokenServer(t, platform.Postgres(t))
	root := g.create(t, "", "root")
	refused := g.cli(t, "", "token", "create", "--bootstrap", "--name", "again")
	requireOneLine(t, refused, platform.ExitRefused, "root", "--force")
	for _, project := range []string{"shop", "lab"} {
		r := g.cli(t, root, "project", "create", project)
		require.Equal(t, platform.ExitOK, r.Code, r.String())
	}
	callers := map[string]string{"": g.create(t, root, "stranger", "lab=admin")}
	for _, role := range []string{"viewer", "operator", "publisher", "admin"} {
		callers[role] = g.create(t, root, role, "shop="+role)
		callers["*"+role] = g.create(t, root, "all-"+role, "*="+role)
	}
	t.Run("every method", func(t *testing.T) { g.everyMethod(t, callers) })
	t.Run("every way in", func(t *testing.T) { g.everyWayIn(t, callers) })
	t.Run("a revocation", func(t *testing.T) { g.revocation(t, root) })
	t.Run("a rotation", func(t *testing.T) { g.rotation(t, root) })
}

func (g *tokenServer) everyMethod(t *testing.T, callers map[string]string) {
	for _, p := range permissions(t) {
		if p.streams() || strings.HasSuffix(p.method, "/SignIn") {
			continue // streams are tested below; a sign-in has its token in the message
		}
		path := "/signalbox.v1." + p.method
		body := `{"project":"shop"}`
		switch service, method, _ := strings.Cut(p.method, "/"); {
		case service == "ProjectService" && method != "ListProjects" && method != "ListAnnotations":
			body = `{"name":"shop"}`
		case p.where == "" || p.where == "in all projects" || method == "ListProjects" || method == "ListDispatchers" ||
			method == "FindWorkflows":
			body = `{}`
		}
		status, reason := g.ask(t, http.MethodPost, path, "", body)
		require.Contains(t, []string{"UNAUTHENTICATED", "RATE_LIMITED"}, reason, "%s: %d", p.method, status)
		for caller, token := range callers {
			role, everywhere := strings.CutPrefix(caller, "*")
			status, reason := g.ask(t, http.MethodPost, path, token, body)
			denied := reason == "PERMISSION_DENIED" || reason == "PROJECT_NOT_FOUND"
			require.NotEqual(t, http.StatusUnauthorized, status, "%s as %q", p.method, caller)
			if strings.HasSuffix(p.where, "the caller's projects") && body != `{}` {
				require.Equal(t, caller == "", denied, "%s as %q: %s", p.method, caller, reason)
				continue
			}
			require.Equal(t, !p.allowed(role, everywhere), denied, "%s as %q: %d %s", p.method, caller, status, reason)
		}
	}
}

func (g *tokenServer) everyWayIn(t *testing.T, callers map[string]string) {
	// gRPC, also its streams.
	runs := signalboxv1connect.NewRunServiceClient(g.client, g.url, connect.WithGRPC())
	watch := func(token string) connect.Code {
		req := connect.NewRequest(&signalboxv1.WatchRunRequest{Project: "shop", Id: "none"})
		req.Header().Set("Authorization", "Bearer "+token)
		stream, err := runs.WatchRun(t.Context(), req)
		require.NoError(t, err)
		require.False(t, stream.Receive())
		require.NoError(t, stream.Close())
		require.NotContains(t, stream.Err().Error(), "PERMISSION")
		return connect.CodeOf(stream.Err())
	}
	require.Equal(t, connect.CodeUnauthenticated, watch("none"))
	require.Equal(t, connect.CodeNotFound, watch(callers["viewer"]))
	start := connect.NewRequest(&signalboxv1.StartRunRequest{Project: "shop", Workflow: "x"})
	start.Header().Set("Authorization", "Bearer "+callers["viewer"])
	_, err := runs.StartRun(t.Context(), start)
	require.Equal(t, connect.CodePermissionDenied, connect.CodeOf(err), "%v", err)

	// REST and posted events.
	const event = `{"specversion":"1.0","id":"1","source":"/s","type":"t"}`
	const events, structured = "/v1/projects/shop/events", "application/cloudevents+json"
	for caller, want := range map[string]int{"": 404, "viewer": 403, "publisher": 403, "operator": 202, "*admin": 202} {
		status, reason := g.ask(t, http.MethodPost, events, callers[caller], event, structured)
		require.Equal(t, want, status, "%q: %s", caller, reason)
	}
	status, _ := g.ask(t, http.MethodPost, events, "none", event, structured)
	require.Equal(t, http.StatusUnauthorized, status)
	for path, want := range map[string]int{
		"/v1/projects/shop/runs": 200, "/v1/projects/lab/runs": 404, "/v1/projects/none/runs": 404, "/metrics": 403} {
		status, reason := g.ask(t, http.MethodGet, path, callers["viewer"], "")
		require.Equal(t, want, status, "%s: %s", path, reason)
	}
	status, _ = g.ask(t, http.MethodGet, "/metrics", callers["*viewer"], "")
	require.Equal(t, http.StatusOK, status)
	status, _ = g.ask(t, http.MethodPost, codecPath, callers["*admin"], sealedBody(t, `{}`))
	require.Equal(t, http.StatusNotFound, status, "the codec endpoint is off")

	// The command line.
	requireOneLine(t, g.cli(t, callers["viewer"], "run", "start", "x", "--project", "shop"), platform.ExitForbidden,
		"lacks the role operator", "PERMISSION_DENIED")
	requireOneLine(t, g.cli(t, callers["viewer"], "run", "list", "--project", "lab"), platform.ExitNotFound,
		"PROJECT_NOT_FOUND")
	requireOneLine(t, g.cli(t, "none", "whoami"), platform.ExitNotSignedIn, "is not a Signalbox token", "UNAUTHENTICATED")
	var projects []struct{ Name string }
	g.cli(t, callers["viewer"], "project", "list", "-o", "json").JSON(t, &projects)
	require.Len(t, projects, 1)
}

func (g *tokenServer) revocation(t *testing.T, root string) {
	token := g.create(t, root, "short", "shop=viewer")
	id := strings.Split(token, "_")[1]
	status, _ := g.ask(t, http.MethodGet, "/v1/whoami", token, "")
	require.Equal(t, http.StatusOK, status)
	status, _ = g.ask(t, http.MethodPost, "/v1/tokens/"+id+":revoke", root, `{"reason":"lost"}`)
	require.Equal(t, http.StatusOK, status)
	status, reason := g.ask(t, http.MethodGet, "/v1/whoami", token, "")
	require.Equal(t, []any{http.StatusUnauthorized, "TOKEN_REVOKED"}, []any{status, reason}, "at once")
	requireOneLine(t, g.cli(t, token, "run", "list"), platform.ExitNotSignedIn, "was revoked", "TOKEN_REVOKED")

	// Every action is in the audit log, and no token is.
	export := g.cli(t, root, "audit", "export", "--project", "-", "--format", "json")
	require.Equal(t, platform.ExitOK, export.Code, export.String())
	actions := map[string]int{}
	for line := range strings.Lines(export.Stdout) {
		var entry struct{ Action string }
		require.NoError(t, json.Unmarshal([]byte(line), &entry), line)
		actions[entry.Action]++
	}
	for _, action := range []string{"token.create", "token.revoke", "access.denied", "project.create"} {
		require.Positive(t, actions[action], "%s in %v", action, actions)
	}
	require.NotRegexp(t, `sbx_[a-z2-7]{16}_`, export.Stdout)
}

func (g *tokenServer) rotation(t *testing.T, root string) {
	shown := func() int64 {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(g.url, "https://"), &tls.Config{InsecureSkipVerify: true})
		require.NoError(t, err)
		defer func() { require.NoError(t, conn.Close()) }()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	require.EqualValues(t, 1, shown())
	g.certify(t, 20_000)
	require.EqualValues(t, 20_000, shown())
	r := g.cli(t, root, "whoami")
	require.Equal(t, platform.ExitOK, r.Code, r.String())
}

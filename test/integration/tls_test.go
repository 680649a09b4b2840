package integration_test

import (
	"crypto/tls"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// tlsServer is a server that requires client certificates, without Temporal.
type tlsServer struct {
	folder, address string
	ours, theirs    *conntest.Authority
	mine            *conntest.Certificate
	settings        []string
	ca, cert, key   string // of a caller
}

func newAuthority(t *testing.T) *conntest.Authority {
	t.Helper()
	a, err := conntest.NewAuthority()
	require.NoError(t, err)
	return a
}

// written returns a function that writes a certificate into the folder.
func (m *tlsServer) written(t *testing.T, name string) func(*conntest.Certificate, error) (cert, key string) {
	return func(c *conntest.Certificate, err error) (string, string) {
		t.Helper()
		require.NoError(t, err)
		cert, key, err := c.Write(m.folder, name)
		require.NoError(t, err)
		return cert, key
	}
}

func startTLSServer(t *testing.T) *tlsServer {
	t.Helper()
	m := &tlsServer{folder: t.TempDir(), address: platform.Address(platform.FreePort(t)), ours: newAuthority(t),
		theirs: newAuthority(t)}
	var err error
	m.ca, err = m.ours.Write(m.folder, "ca")
	require.NoError(t, err)
	callers, err := m.ours.Write(m.folder, "callers")
	require.NoError(t, err)
	m.mine, err = m.ours.Client("ada", time.Now().Add(time.Hour))
	require.NoError(t, err)
	m.cert, m.key = m.written(t, "mine")(m.mine, nil)
	cert, key := m.written(t, "server")(m.ours.Server("127.0.0.1"))
	m.settings = []string{
		"SIGNALBOX_LISTEN=" + m.address, "SIGNALBOX_AUTH_MODE=tokens", "SIGNALBOX_TEMPORAL_ADDRESS=" +
			platform.Address(platform.FreePort(t)),
		"SIGNALBOX_LISTEN_TLS_CERT_FILE=" + cert, "SIGNALBOX_LISTEN_TLS_KEY_FILE=" +
			key, "SIGNALBOX_LISTEN_TLS_CLIENT_CA_FILE=" + callers,
		"SIGNALBOX_STORE_DRIVER=sqlite", "SIGNALBOX_STORE_DSN=" +
			filepath.Join(m.folder, "signalbox.db"), platform.WithKeys(t),
	}
	platform.StartProcess(t, "server", platform.ServerBinary(t), m.settings, []string{"server"})
	return m
}

// cli runs a command with an environment of its own.
func (m *tlsServer) cli(t *testing.T, env []string, args ...string) platform.Result {
	t.Helper()
	return platform.Run(t, platform.Command{Binary: platform.ServerBinary(t), Args: args, Env: env})
}

// The server presents a certificate and requires one: a caller with the right one is accepted, and any other
// receives the reason.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	m := startTLSServer(t)
	var token string
	platform.Eventually(t, soon, func() string { // until the server has made its database
		r := m.cli(t, m.settings, "token", "create", "--bootstrap", "--name", "ada")
		token = strings.TrimSpace(r.Stdout)
		if r.Code != platform.ExitOK {
			return r.String()
		}
		return ""
	})
	known := []string{"SIGNALBOX_ADDRESS=https://" + m.address, "SIGNALBOX_TOKEN=" + token}
	right := append(slices.Clone(known), "SIGNALBOX_CA_FILE="+m.ca, "SIGNALBOX_CERT_FILE="+m.cert,
		"SIGNALBOX_KEY_FILE="+m.key)
	platform.Eventually(t, soon, func() string {
		if r := m.cli(t, right, "whoami"); r.Code != platform.ExitOK {
			return r.String()
		}
		return ""
	})
	t.Run("wrong certificates", func(t *testing.T) { m.wrong(t, known) })
	t.Run("programs", func(t *testing.T) { m.programs(t, token) })
	t.Run("rotations", func(t *testing.T) { m.rotations(t, right) })
}

func (m *tlsServer) wrong(t *testing.T, known []string) {
	foreign, err := m.theirs.Write(m.folder, "foreign-ca")
	require.NoError(t, err)
	foreignCert, foreignKey := m.written(t, "foreign")(m.theirs.Client("eve", time.Now().Add(time.Hour)))
	oldCert, oldKey := m.written(t, "old")(m.ours.Client("ada", time.Now().Add(-time.Minute)))
	serverCert, serverKey := m.written(t, "other")(m.ours.Server("127.0.0.1"))
	files := func(ca, cert, key string) []string {
		return []string{"SIGNALBOX_CA_FILE=" + ca, "SIGNALBOX_CERT_FILE=" + cert, "SIGNALBOX_KEY_FILE=" + key}
	}
	const here, usage = platform.ExitUnavailable, platform.ExitUsage
	for name, tt := range map[string]struct {
		env  []string
		code int
		says []string
	}{
		"the system's authorities": {
			files("", m.cert, m.key), here, []string{m.address, "not to be trusted", "unknown authority", "--ca-file"}},
		"another authority": {files(foreign, m.cert, m.key), here, []string{m.address, "not to be trusted", "--ca-file"}},
		"no certificate": {files(m.ca, "", ""), here,
			[]string{m.address, "refuses", "certificate required", "--cert-file"}},
		"a foreign one": {files(m.ca, foreignCert, foreignKey), here, []string{"refuses", "unknown certificate authority"}},
		"an old one":    {files(m.ca, oldCert, oldKey), here, []string{"refuses", "expired certificate"}},
		"a server's":    {files(m.ca, serverCert, serverKey), here, []string{"refuses", "bad certificate"}},
		"another key":   {files(m.ca, m.cert, oldKey), usage, []string{"private key does not match"}},
		"no key":        {files(m.ca, m.cert, ""), usage, []string{"both", "SIGNALBOX_KEY_FILE"}},
		"no file":       {files(m.ca+"x", "", ""), usage, []string{m.ca + "x", "no such file", "--ca-file"}},
		"no PEM":        {files(m.key, "", ""), usage, []string{m.key, "no certificate in PEM form"}},
		"no TLS": {append(files(m.ca, m.cert, m.key), "SIGNALBOX_ADDRESS="+m.address), here,
			[]string{"speaks TLS", "https://" + m.address}},
		"another name": {append(files(m.ca, m.cert, m.key),
			"SIGNALBOX_ADDRESS=https://localhost:"+strings.Split(m.address, ":")[1]),
			here, []string{"not to be trusted", "localhost"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := append(slices.Clone(known), tt.env...)
			for _, args := range [][]string{{"whoami"}, {"run", "watch", "x"}, {"run", "export", "--all"}} {
				requireOneLine(t, m.cli(t, env, args...), tt.code, tt.says...)
			}
		})
	}
}

func (m *tlsServer) programs(t *testing.T, token string) {
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: m.ours.ClientConfig(m.mine), ForceAttemptHTTP2: true}}
	t.Cleanup(client.CloseIdleConnections)
	who := connect.NewRequest(&signalboxv1.WhoAmIRequest{})
	who.Header().Set("Authorization", "Bearer "+token)
	me, err := signalboxv1connect.NewTokenServiceClient(client, "https://"+m.address,
		connect.WithGRPC()).WhoAmI(t.Context(), who)
	require.NoError(t, err)
	require.Equal(t, "ada", me.Msg.GetName())
	for path, want := range map[string]int{"/livez": 200, "/v1/whoami": 401} {
		res, err := client.Get("https://" + m.address + path)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, want, res.StatusCode, "a certificate does not replace a token")
		require.NotEmpty(t, res.Header.Get("Strict-Transport-Security"))
	}
	bare := &http.Client{Transport: &http.Transport{TLSClientConfig: m.ours.ClientConfig(nil)}}
	_, err = bare.Get("https://" + m.address + "/livez")
	require.ErrorContains(t, err, "certificate required", "for whatever is asked")
}

func (m *tlsServer) rotations(t *testing.T, right []string) {
	shown := func(a *conntest.Authority) error {
		c, err := tls.Dial("tcp", m.address, a.ClientConfig(m.mine))
		if err != nil {
			return err
		}
		return c.Close()
	}
	require.NoError(t, shown(m.ours))
	m.written(t, "server")(m.theirs.Server("127.0.0.1"))
	require.ErrorContains(t, shown(m.ours), "unknown authority", "with the next handshake")
	require.NoError(t, shown(m.theirs))
	m.written(t, "server")(m.ours.Server("127.0.0.1"))
	require.Equal(t, platform.ExitOK, m.cli(t, right, "whoami").Code)

	// The authorities of callers are reloaded, too.
	_, err := m.theirs.Write(m.folder, "callers")
	require.NoError(t, err)
	requireOneLine(t, m.cli(t, right, "whoami"), platform.ExitUnavailable, "refuses", "unknown certificate authority")
	cert, key := m.written(t, "theirs")(m.theirs.Client("ada", time.Now().Add(time.Hour)))
	r := m.cli(t, append(slices.Clone(right), "SIGNALBOX_CERT_FILE="+cert, "SIGNALBOX_KEY_FILE="+key), "whoami")
	require.Equal(t, platform.ExitOK, r.Code, r.String())
}

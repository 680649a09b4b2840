package procedures_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// rotate replaces tokens, certificates and passwords of a platform with TLS.
func rotate(t *testing.T, g *guide) {
	i := newInstallation(t, startCluster(t)) // it changes the password of a role
	authority, err := conntest.NewAuthority()
	require.NoError(t, err)
	i.useTLS(t, authority)
	i.migrate(t)
	i.startWithTLS(t)
	i.signIn(t)
	s := g.section(t, "Key rotation")
	i.until(t, s, `test +active`, "signalbox system keys")
	i.rotateTokens(t, s)
	i.rotateSealingKeys(t, g.section(t, "Sealing keys"))

	i.eventually(t, "signalbox system status", `certificate\s`)
	i.certificates(t, authority, 30*24*time.Hour)
	status := i.until(t, s, `generation 2\b`, "signalbox system status")
	require.NotContains(t, status, "certificate")
	address := strings.TrimPrefix(i.variable("SIGNALBOX_ADDRESS"), "https://")
	i.until(t, s, "notAfter="+time.Now().UTC().Add(30*24*time.Hour).Format("Jan"), "openssl s_client", "HOST:8080",
		address)

	i.rotateRedis(t, g.section(t, "Redis' password"))

	s = g.section(t, "Postgres' password")
	cmd := i.command(t, s.take(t, `psql "$DSN"`))
	cmd.Stdin = strings.NewReader("new\nnew\n")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Run(), out.String())
	i.refusesFormer(t, `psql "$DSN" -c 'SELECT 1'`)
	i.shell(t, "signalbox project create still") // by an open connection
	i.secret(t, "postgres-password", "new")
	i.stop(t)
	i.startWithTLS(t)
	i.shell(t, "signalbox project create again")
}

// refusesFormer requires that a command fails, because it has the former password.
func (i *installation) refusesFormer(t *testing.T, text string) {
	t.Helper()
	out, err := i.command(t, text).CombinedOutput()
	require.Error(t, err, string(out))
	require.Regexp(t, refused, string(out))
}

// useTLS puts a Temporal that requires client certificates before the shared one, and gives the API a certificate.
func (i *installation) useTLS(t *testing.T, authority *conntest.Authority) {
	t.Helper()
	server, err := authority.Server()
	require.NoError(t, err)
	frontend := conntest.Run(t, conntest.Options{Upstream: i.temporal.Address, TLS: authority.ServerConfig(server, true)})
	i.temporal = &platform.Temporal{Address: frontend.Addr()}
	address := i.variable("SIGNALBOX_ADDRESS")
	i.configure(t, address)
	ca, err := authority.Write(i.folder, "ca")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(ca, 0o644)) //nolint:gosec // it is no secret
	i.certificates(t, authority, 10*time.Minute)
	i.settings = append(i.settings, "SIGNALBOX_TEMPORAL_TLS_CA_FILE="+ca,
		"SIGNALBOX_TEMPORAL_TLS_CERT_FILE="+filepath.Join(i.folder, "client.crt"), "SIGNALBOX_TEMPORAL_TLS_KEY_FILE="+
			filepath.Join(i.folder, "client.key"))
	i.set("SIGNALBOX_ADDRESS=https://"+address, "SIGNALBOX_CA_FILE="+ca)
}

// certificates writes certificates of the API and of the servers as clients of Temporal, over the former ones.
func (i *installation) certificates(t *testing.T, authority *conntest.Authority, lasts time.Duration) {
	t.Helper()
	client, err := authority.Client("signalbox", time.Now().Add(lasts))
	require.NoError(t, err)
	_, _, err = client.Write(i.folder, "client")
	require.NoError(t, err)
	api, err := authority.ServerUntil(time.Now().Add(lasts), "127.0.0.1")
	require.NoError(t, err)
	_, _, err = api.Write(i.folder, "api")
	require.NoError(t, err)
}

// startWithTLS is start for an API with a certificate.
func (i *installation) startWithTLS(t *testing.T) {
	t.Helper()
	i.api = i.launch(t, platform.API,
		"SIGNALBOX_LISTEN_TLS_CERT_FILE="+filepath.Join(i.folder, "api.crt"), "SIGNALBOX_LISTEN_TLS_KEY_FILE="+
			filepath.Join(i.folder, "api.key"))
	i.worker = i.launch(t, platform.Worker)
	i.worker.AwaitReady(t)
	i.eventually(t, `curl -fs --cacert "$SIGNALBOX_CA_FILE" "$SIGNALBOX_ADDRESS/readyz?role=api"`, "")
}

// rotateTokens replaces the token of a program and the first one, and ends a session.
func (i *installation) rotateTokens(t *testing.T, s *section) {
	t.Helper()
	i.shell(t, "signalbox token create --name ci --role default=operator")
	created := strings.Fields(i.do(t, s, "signalbox token create"))
	program := created[len(created)-1]
	i.shell(t, "SIGNALBOX_TOKEN="+program+" signalbox run list")
	i.do(t, s, "signalbox token revoke", "ID", i.token(t, "ci"))
	i.until(t, s, `(?s)ci-2.*ci .*revoked`, "signalbox token list")
	created = strings.Fields(i.do(t, s, "signalbox token create --bootstrap", "NAME", "grace"))
	i.set("SIGNALBOX_TOKEN=" + created[len(created)-1])
	require.Contains(t, i.do(t, s, "signalbox token list"), "ada")
	lost := i.token(t, "ada")
	i.shell(t, `curl -fs --cacert "$SIGNALBOX_CA_FILE" -H 'Content-Type: application/json' -d '{"token":"`+program+
		`"}' "$SIGNALBOX_ADDRESS/v1/session:sign-in"`)
	i.shell(t, "signalbox token revoke "+lost)
	session := strings.Fields(i.shell(t, "signalbox token sessions -o name"))
	require.Len(t, session, 1)
	i.do(t, s, "signalbox token revoke-session", "ID", session[0])
	require.NotContains(t, i.do(t, s, "signalbox token sessions"), session[0])
}

// token returns the ID of a token that is not revoked.
func (i *installation) token(t *testing.T, name string) string {
	t.Helper()
	return strings.TrimSpace(i.shell(t, `signalbox token list --jq '.[] | select(.name == "`+name+`") | .id'`))
}

// rotateSealingKeys replaces the sealing key.
func (i *installation) rotateSealingKeys(t *testing.T, s *section) {
	t.Helper()
	i.secret(t, "next-key", i.shell(t, "head -c 32 /dev/urandom | base64"))
	former, next := "test: "+i.folder+"/sealing-key", "next: "+i.folder+"/next-key"
	restart := func(encryption string) {
		t.Helper()
		i.encryption = encryption
		i.configure(t, strings.TrimPrefix(i.variable("SIGNALBOX_ADDRESS"), "https://"))
		i.stop(t)
		i.startWithTLS(t)
	}
	restart("{keys: {" + former + ", " + next + "}, active: test}")
	restart("{keys: {" + former + ", " + next + "}, active: next}")
	i.until(t, s, `(?s)next +active.*test +not needed`, "signalbox system keys")
	i.encryption = "{keys: {" + next + "}}"
	i.configure(t, strings.TrimPrefix(i.variable("SIGNALBOX_ADDRESS"), "https://"))
	i.do(t, s, "signalbox check-config")
	restart(i.encryption)
}

// rotateRedis replaces the password of the servers, while both are valid.
func (i *installation) rotateRedis(t *testing.T, s *section) {
	t.Helper()
	variable, value, _ := strings.Cut(strings.TrimPrefix(s.take(t, "export REDISCLI_AUTH"), "export "), "=")
	i.set(variable + "=" + i.shell(t, "printf %s "+value))
	i.do(t, s, "printf 'ACL SETUSER signalbox >")
	i.secret(t, "redis-password", "new")
	i.do(t, s, "printf 'ACL SETUSER signalbox <")
	i.do(t, s, `redis-cli -u "$REDIS_URL" --user signalbox_admin ACL SAVE`)
	require.Empty(t, strings.TrimSpace(i.do(t, s, `redis-cli -u "$REDIS_URL" --user signalbox_admin ACL LOG`)))
	// The servers connect again, with the new password.
	i.redis.Kill()
	i.startRedis(t)
	i.eventually(t, "signalbox dispatcher list", `held`)
	i.eventually(t, `curl -fs --cacert "$SIGNALBOX_CA_FILE" "$SIGNALBOX_ADDRESS/readyz"`, `"leases"[^}]*"up"`)
}

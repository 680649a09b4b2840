package command_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/internal/app/command"
	"github.com/signalbox-dev/signalbox/internal/cli"
	"github.com/signalbox-dev/signalbox/internal/cli/exit"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/keyring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noTemporal is an address that refuses connections.
const noTemporal = "127.0.0.1:1"

// locked is a buffer that a test may read while a command writes.
type locked struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// program returns the lean program's command line with its own environment.
func program(database string, out, problems io.Writer) cli.Options {
	options := command.Main()
	options.Stdin, options.Stdout, options.Stderr = strings.NewReader(""), out, problems
	options.Env = config.Environment{
		"SIGNALBOX_STORE_DSN": database, "SIGNALBOX_LISTEN": "127.0.0.1:0", "SIGNALBOX_TEMPORAL_ADDRESS": noTemporal,
		"SIGNALBOX_WORKER_STOP_TIMEOUT": "1s",
	}
	key := filepath.Join(filepath.Dir(database), "test.key")
	if err := os.WriteFile(key, keyring.Generate(), 0o600); err == nil { // a test may ask for a folder that does not exist
		options.Env["SIGNALBOX_ENCRYPTION_KEYS"] = "test=" + key
	}
	options.Commands = []*cobra.Command{
		command.Server(options.Version, options.Env, options.ConfigLayers),
		command.Migrate(options.Env, options.ConfigLayers[:1]),
	}
	return options
}

// run runs one command line to its end.
func run(t *testing.T, database string, arguments ...string) (int, string, string) {
	t.Helper()
	var out, problems locked
	code := cli.Run(t.Context(), program(database, &out, &problems), arguments)
	return code, out.String(), problems.String()
}

// The schema of an empty database is pending, is migrated once, and is then up to date; a server without auto_migrate
// starts only after that.
func TestMigrate(t *testing.T) {
	t.Parallel()
	database := filepath.Join(t.TempDir(), "signalbox.db")
	code, out, problems := run(t, database, "migrate", "status")
	require.Equal(t, exit.OK, code, problems)
	require.Regexp(t, `(?m)^VERSION +NAME +APPLIED$`, out)
	require.Contains(t, out, "pending")

	code, _, problems = run(t, database, "server", "--store-auto-migrate=false")
	require.Equal(t, exit.Failed, code)
	require.Contains(t, problems, "signalbox migrate up")

	code, out, problems = run(t, database, "migrate", "up")
	require.Equal(t, exit.OK, code, problems)
	require.Regexp(t, `(?m)^applied 1 `, out)
	code, out, problems = run(t, database, "migrate", "up")
	require.Equal(t, exit.OK, code, problems)
	require.Equal(t, strconv.Quote(database)+" is up to date\n", out)
	code, out, problems = run(t, database, "migrate", "status")
	require.Equal(t, exit.OK, code, problems)
	require.NotContains(t, out, "pending")
	require.Regexp(t, `(?m)^1 .* \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`, out)
}

// A server starts without Temporal, logs its listen address, and stops regularly after an interrupt.
func TestServer(t *testing.T) {
	t.Parallel()
	var out, problems locked
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan int, 1)
	options := program(filepath.Join(t.TempDir(), "signalbox.db"), &out, &problems)
	go func() { ended <- cli.Run(ctx, options, []string{"server", "--log-format", "text"}) }()
	ready := regexp.MustCompile(`msg="Signalbox is ready" listen=(\S+)`)
	require.Eventually(t, func() bool { return ready.MatchString(problems.String()) }, time.Minute, 10*time.Millisecond)
	connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", ready.FindStringSubmatch(problems.String())[1])
	require.NoError(t, err)
	require.NoError(t, connection.Close())
	interrupt()
	select {
	case code := <-ended:
		require.Equal(t, exit.OK, code, problems.String())
	case <-time.After(time.Minute):
		require.FailNow(t, "the server does not stop", problems.String())
	}
	require.Contains(t, problems.String(), "Signalbox has stopped")
	require.Empty(t, out.String(), "data only on standard output")
}

// All invalid settings are reported together, and nothing starts.
func TestServerRefusesSettings(t *testing.T) {
	t.Parallel()
	database := filepath.Join(t.TempDir(), "signalbox.db")
	code, _, problems := run(t, database, "server", "--listen", "everywhere", "--roles", "api,cook")
	require.NotEqual(t, exit.OK, code)
	require.Contains(t, problems, "--listen")
	require.Contains(t, problems, "cook")
	require.NoFileExists(t, database)

	credentials := []string{
		"--temporal-address", "http://temporal:7233", "--temporal-tls-ca-file", notPEM(t), "--temporal-api-key-file",
		"/nowhere/key",
	}
	code, _, problems = run(t, database, append([]string{"server"}, credentials...)...)
	require.NotEqual(t, exit.OK, code)
	for _, key := range []string{"temporal.address", "temporal.tls.ca_file", "temporal.api_key_file"} {
		require.Contains(t, problems, key+" (--")
	}
	require.NoFileExists(t, database)
	code, out, _ := run(t, database, append([]string{"check-config"}, credentials...)...)
	require.Equal(t, exit.Failed, code)
	require.Equal(t, strings.TrimPrefix(problems, "error: "), out, "the same problems in the same words")

	code, _, problems = run(t, database, "server", "now")
	require.Equal(t, exit.Usage, code, problems)
	code, _, problems = run(t, filepath.Join(t.TempDir(), "missing", "signalbox.db"), "migrate", "up")
	require.Equal(t, exit.Failed, code)
	require.Contains(t, problems, "missing")
}

func notPEM(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(path, []byte("no certificate"), 0o600))
	return path
}

// check-config reports an expired client certificate as a problem; a server starts with it and logs it.
func TestExpiredCertificate(t *testing.T) {
	t.Parallel()
	cert, key := expired(t)
	files := []string{"--temporal-tls-cert-file", cert, "--temporal-tls-key-file", key}
	database := filepath.Join(t.TempDir(), "signalbox.db")
	code, out, _ := run(t, database, append([]string{"check-config"}, files...)...)
	require.Equal(t, exit.Failed, code)
	require.Contains(t, out, "temporal.tls.cert_file (--temporal-tls-cert-file): the client certificate expired at ")
	code, out, _ = run(t, database, append([]string{"check-config", "-o", "json"}, files...)...)
	require.Equal(t, exit.Failed, code)
	require.Contains(t, out, `"heals": true`)

	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var stdout, problems locked
	ended := make(chan int, 1)
	options := program(database, &stdout, &problems)
	go func() { ended <- cli.Run(ctx, options, append([]string{"server", "--log-format", "text"}, files...)) }()
	require.Eventually(t, func() bool {
		return strings.Contains(problems.String(), "Signalbox is ready")
	}, time.Minute, 10*time.Millisecond)
	require.Contains(t, problems.String(), "the client certificate expired at ")
	interrupt()
	require.Equal(t, exit.OK, <-ended, problems.String())
}

// expired returns the files of an expired client certificate and of its key.
func expired(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(-time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	folder := t.TempDir()
	save := func(name, kind string, content []byte) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600))
		return path
	}
	return save("cert.pem", "CERTIFICATE", cert), save("key.pem", "PRIVATE KEY", private)
}

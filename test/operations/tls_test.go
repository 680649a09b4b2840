package operations_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// With the lines for TLS, our configuration scrapes a server that has a certificate and requires tokens. An alert
// demands that the certificate is renewed, and is resolved by new files.
func TestPrometheusScrapesAServerWithTLS(t *testing.T) {
	t.Parallel()
	folder, address := t.TempDir(), platform.Address(platform.FreePort(t))
	authority, err := conntest.NewAuthority()
	require.NoError(t, err)
	ca, err := authority.Write(folder, "ca")
	require.NoError(t, err)
	cert, key := writeServer(t, authority, folder, 10*time.Minute)
	settings := []string{
		"SIGNALBOX_LISTEN=" + address, "SIGNALBOX_AUTH_MODE=tokens", "SIGNALBOX_TEMPORAL_ADDRESS=" +
			platform.Address(platform.FreePort(t)),
		"SIGNALBOX_LISTEN_TLS_CERT_FILE=" + cert, "SIGNALBOX_LISTEN_TLS_KEY_FILE=" + key,
		"SIGNALBOX_STORE_DRIVER=sqlite", "SIGNALBOX_STORE_DSN=" + filepath.Join(folder, "signalbox.db"), platform.WithKeys(t),
	}
	created := platform.Run(t, platform.Command{
		Binary: platform.ServerBinary(t),
		Args:   []string{"token", "create", "--bootstrap", "--name", "prometheus", "--role", "*=viewer"}, Env: settings,
	})
	require.Equal(t, platform.ExitOK, created.Code, created.String())
	token := filepath.Join(folder, "prometheus.token")
	require.NoError(t, os.WriteFile(token, []byte(created.Stdout), 0o600))
	platform.StartProcess(t, "server", platform.ServerBinary(t), settings, []string{"server"})

	s := startPrometheus(t, scraperOptions{targets: []string{address}, faster: quicker, token: token, ca: ca})
	s.waitForScrapes(t, 1)
	s.awaitSeverities(t, "ListenerCertificateExpiring", "page", "ticket")
	writeServer(t, authority, folder, 60*24*time.Hour)
	s.awaitSeverities(t, "ListenerCertificateExpiring")
}

// writeServer issues a certificate of a server that ends after a time, into the same files each time.
func writeServer(t *testing.T, a *conntest.Authority, folder string, lasts time.Duration) (certFile, keyFile string) {
	t.Helper()
	c, err := a.ServerUntil(time.Now().Add(lasts), "127.0.0.1")
	require.NoError(t, err)
	certFile, keyFile, err = c.Write(folder, "server")
	require.NoError(t, err)
	return certFile, keyFile
}

// awaitSeverities waits until an alert fires with exactly these severities.
func (s *scraper) awaitSeverities(t *testing.T, alert string, severities ...string) {
	t.Helper()
	platform.Eventually(t, soon, func() string {
		found := []string{}
		series, wrong := s.query(t, `ALERTS{alertstate="firing",alertname="`+alert+`"}`)
		for _, one := range series {
			found = append(found, one.labels["severity"])
		}
		if slices.Sort(found); wrong == "" && !slices.Equal(found, severities) {
			return alert + " fires with the severities: " + strings.Join(found, " ")
		}
		return wrong
	})
}

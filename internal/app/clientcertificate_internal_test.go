package app

import (
	"bytes"
	"crypto/x509"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/health"
)

func TestCertificateCondition(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	lives := func(before, after time.Duration) *x509.Certificate {
		return &x509.Certificate{NotBefore: now.Add(-before), NotAfter: now.Add(after)}
	}
	for name, c := range map[string]struct {
		certificate *x509.Certificate
		err         error
		want        health.Condition
	}{
		"long before its end": {lives(day, 89*day), nil, health.Condition{State: "valid", Since: now.Add(-day)}},
		"a moment before two weeks": {
			lives(75*day, 14*day+1), nil, health.Condition{State: "valid", Since: now.Add(-75 * day)}},
		"two weeks": {lives(76*day, 14*day), nil, health.Condition{State: "ending", Since: now}},
		"most of a short life is left": {
			lives(time.Hour, 5*time.Hour), nil, health.Condition{State: "valid", Since: now.Add(-time.Hour)}},
		"a quarter of a short life":  {lives(3*time.Hour, time.Hour), nil, health.Condition{State: "ending", Since: now}},
		"the end":                    {lives(day, 0), nil, health.Condition{State: "expired", Since: now}},
		"its file is gone":           {nil, errors.New("no such file"), health.Condition{State: "unreadable", Since: now}},
		"its file has none any more": {nil, nil, health.Condition{State: "unreadable", Since: now}},
	} {
		got := certificateCondition(c.certificate, c.err, now)
		require.Equal(t, c.want.State != "valid", got.Err != nil, name)
		require.True(t, got.Usable, name)
		got.Err, got.Usable = nil, false
		require.Equal(t, c.want, got, name)
	}
}

func TestCertificateChangesAreLoggedOnce(t *testing.T) {
	t.Parallel()
	authority, err := conntest.NewAuthority()
	require.NoError(t, err)
	folder, now := t.TempDir(), time.Now()
	issue := func() (string, time.Time) {
		issued, err := authority.Client("signalbox", now.Add(time.Hour))
		require.NoError(t, err)
		file, _, err := issued.Write(folder, "client")
		require.NoError(t, err)
		return file, issued.Leaf.NotAfter
	}
	file, end := issue()
	var lines bytes.Buffer
	c := &clientCertificate{
		temporal: config.Temporal{TLS: config.TLS{CertFile: file}}, now: func() time.Time {
			return now
		}, log: slog.New(slog.NewTextHandler(&lines, nil)),
	}
	require.True(t, c.used())
	require.Equal(t, "valid", c.condition().State)
	require.Empty(t, lines.String())
	shown, known := c.ends()
	require.True(t, known)
	require.Equal(t, end, shown)
	now = end.Add(-time.Minute)
	for range 3 {
		require.Equal(t, "ending", c.condition().State)
	}
	require.Equal(t, 1, strings.Count(lines.String(), "needs to be renewed"), lines.String())
	issue()
	require.Equal(t, "valid", c.condition().State)
	require.Contains(t, lines.String(), "is valid again")
	require.False(t, (&clientCertificate{}).used())
}

package otlp

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFailingExportsAreLoggedOnceAMinute(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Unix(1767225600, 0)
	r := newReport(slog.New(slog.NewTextHandler(&out, nil)), "Traces", "spans")
	r.now = func() time.Time { return now }
	lines := func() []string {
		defer out.Reset()
		return strings.Split(strings.TrimSpace(out.String()), "\n")
	}
	r.exported(t.Context(), 5, nil)
	require.Empty(t, out.String())
	for range 10 {
		r.exported(t.Context(), 2, errors.New("refused "+strings.Repeat("x", 1000)))
		now = now.Add(5 * time.Second)
	}
	failed := lines()
	require.Len(t, failed, 1)
	require.Contains(t, failed[0], "Traces cannot be exported")
	require.Less(t, len(failed[0]), 500)
	now = now.Add(20 * time.Second)
	r.exported(t.Context(), 2, errors.New("refused"))
	require.Contains(t, lines()[0], "lost_spans=22")
	r.exported(t.Context(), 2, nil)
	r.exported(t.Context(), 2, nil)
	again := lines()
	require.Len(t, again, 1)
	require.Contains(t, again[0], `level=INFO msg="Traces are exported again" lost_spans=22`)
}

package invocation

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProgressShowsShareRateAndTimeLeft(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	var out bytes.Buffer
	p := &Progress{w: &out, width: 80, now: func() time.Time { return now }}
	p.Of(100, 500, "run")
	require.Equal(t, "\r\x1b[K[####................]  20%  100 of 500 runs", out.String(), "the rate is not known yet")
	out.Reset()
	p.Of(110, 500, "run")
	require.Empty(t, out.String(), "it is not drawn more often than can be read")
	now = now.Add(4 * time.Second)
	p.Of(300, 500, "run")
	require.Equal(t, "\r\x1b[K[############........]  60%  300 of 500 runs, 50.0/s, 4s left", out.String(),
		"the rate is that of what this command has seen")
	out.Reset()
	p.Clear()
	p.Clear()
	require.Equal(t, "\r\x1b[K", out.String())

	narrow := &Progress{w: &out, width: 20, now: p.now}
	out.Reset()
	narrow.Of(1, 2, "run")
	require.Len(t, strings.TrimPrefix(out.String(), "\r\x1b[K"), 19)
	out.Reset()
	p = &Progress{w: &out, width: 80, now: func() time.Time { return now }}
	p.Bytes(0)
	now = now.Add(2 * time.Second)
	p.Bytes(3 << 20)
	require.Equal(t, "\r\x1b[K0.0 MiB\r\x1b[K3.0 MiB, 1.5 MiB/s", out.String())
}

// Nothing is drawn where standard error is no terminal.
func TestProgressWithoutTerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := New(Streams{Err: &out, Now: time.Now})
	p := s.Progress()
	p.Of(1, 2, "run")
	p.Bytes(1)
	p.Clear()
	require.Empty(t, out.String())
}

package output_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/sandbox/output"
)

// The limit holds for each stream, and a write over it ends the context of the program.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	s := output.New(4, cancel)
	for _, w := range []io.Writer{s.Stdout(), s.Stderr()} {
		n, err := io.WriteString(w, "four")
		require.NoError(t, err)
		require.Equal(t, 4, n)
	}
	require.NoError(t, ctx.Err(), "each is exactly full")
	n, err := io.WriteString(s.Stderr(), "more")
	require.NoError(t, err, "a program that ignores errors ends as well")
	require.Equal(t, 4, n)
	require.ErrorIs(t, context.Cause(ctx), output.ErrFull)
	stdout, stderr := s.Text()
	require.Equal(t, "four four", stdout+" "+stderr)
}

func TestTextIsValid(t *testing.T) {
	t.Parallel()
	s := output.New(4, func(error) {})
	_, err := io.WriteString(s.Stdout(), "a\xffä€")
	require.NoError(t, err)
	stdout, _ := s.Text()
	require.Equal(t, "a\uFFFDä", stdout, "the limit cuts the last character")
	_, err = io.WriteString(s.Stderr(), "ää€")
	require.NoError(t, err)
	_, stderr := s.Text()
	require.Equal(t, "ää", stderr)
	s = output.New(2, func(error) {})
	_, err = io.WriteString(s.Stdout(), "aä")
	require.NoError(t, err)
	stdout, _ = s.Text()
	require.Equal(t, "a\uFFFD", stdout)
}

// What a program prints is read while it prints.
func TestStreamsAreReadWhileTheyAreWritten(t *testing.T) {
	t.Parallel()
	const writers, lines = 4, 200
	s := output.New(1<<20, func(error) {})
	var running sync.WaitGroup
	for i := range writers {
		running.Go(func() {
			for range lines {
				_, _ = fmt.Fprintln(s.Stdout(), i)
				_, _ = fmt.Fprintln(s.Stderr(), i)
			}
		})
	}
	for last := 0; last < writers*lines; {
		stdout, _ := s.Text()
		n := strings.Count(stdout, "\n")
		require.GreaterOrEqual(t, n, last)
		last = n
	}
	running.Wait()
	stdout, stderr := s.Text()
	require.Equal(t, writers*lines, strings.Count(stdout, "\n"))
	require.Equal(t, writers*lines, strings.Count(stderr, "\n"))
}

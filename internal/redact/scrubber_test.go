package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

func TestNothingToScrub(t *testing.T) {
	t.Parallel()
	s := redact.NewScrubber("", "short", "1234567")
	require.Nil(t, s)
	require.Equal(t, "short", s.Text("short"))
	require.Equal(t, []byte("short"), s.Bytes([]byte("short")))
	require.Equal(t, map[string]any{"a": 1}, s.Value(map[string]any{"a": 1}))
}

func TestValues(t *testing.T) {
	t.Parallel()
	s := redact.NewScrubber("12345678", "12345678-longer")
	given := map[string]any{
		"key 12345678": []any{"a 12345678-longer b", 12345678, 1234567, true, nil, 3.5},
		"other":        map[string]any{"x": "12345678"},
	}
	require.Equal(t, map[string]any{
		"key ⟦redacted⟧": []any{"a ⟦redacted⟧ b", "⟦redacted⟧", 1234567, true, nil, 3.5},
		"other":          map[string]any{"x": "⟦redacted⟧"},
	}, s.Value(given))
	require.Equal(t, "12345678", given["other"].(map[string]any)["x"], "the argument is unchanged")
}

func TestPartsOfURLs(t *testing.T) {
	t.Parallel()
	const secret = "https://somebody:p4ssw0rd-long@example.com/hooks/T0/a b?key=0123456789&n=1#fragment"
	s := redact.NewScrubber(secret)
	u, err := url.Parse(secret)
	require.NoError(t, err)
	require.Equal(t, redact.Mark, s.Text(u.Redacted()[:len(u.Redacted())-len("#fragment")]))
	for _, part := range []string{
		u.RequestURI(), "somebody", "p4ssw0rd-long", "/hooks/T0/a b", "/hooks/T0/a%20b", "0123456789"} {
		require.Equal(t, "<"+redact.Mark+">", s.Text("<"+part+">"))
	}
	require.Equal(t, "n=1", s.Text("n=1"))
	require.Equal(t, "/x/"+redact.Mark, redact.NewScrubber(`path "[x]`).Text("/x/path%20%22%5Bx%5D"), "a value in a path")
}

func TestSpellings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringOfN(rapid.RuneFrom([]rune("abcXYZ019 /+=&%\"<>\\\n-_é")), 8, 40, -1).Draw(t, "value")
		before := rapid.StringOfN(rapid.RuneFrom([]rune("abc:")), 0, 5, -1).Draw(t, "before")
		s := redact.NewScrubber(value)
		for _, text := range []string{
			before + value, url.QueryEscape(value), url.PathEscape(value), hex.EncodeToString([]byte(value)),
		} {
			require.NotContains(t, s.Text(text), value)
		}
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			text := encoding.EncodeToString([]byte(before + value + "tail"))
			decoded, _ := encoding.DecodeString(s.Text(text))
			require.NotContains(t, string(decoded), value)
			require.Contains(t, s.Text(text), redact.Mark)
		}
	})
}

func TestErrors(t *testing.T) {
	t.Parallel()
	s := redact.NewScrubber("planted-4711")
	require.NoError(t, s.Error(nil))
	require.ErrorIs(t, s.Error(io.EOF), io.EOF, "an error without secrets is returned unchanged")
	require.EqualError(t, s.Error(fmt.Errorf("no room for planted-4711: %w", io.EOF)), "no room for ⟦redacted⟧: EOF")
	given := apperror.New(apperror.Unavailable, apperror.EngineUnavailable,
		"no planted-4711").WithRetry(time.Second).WithCause(errors.New("planted-4711"))
	f, ok := apperror.From(s.Error(given))
	require.True(t, ok)
	require.Equal(t, []any{"no ⟦redacted⟧", apperror.Unavailable, apperror.EngineUnavailable, time.Second},
		[]any{f.Message, f.Class, f.Reason, f.RetryAfter})
	require.EqualError(t, f.Cause, "⟦redacted⟧")
	require.Equal(t, "no planted-4711", given.Message, "the argument is unchanged")
	var none *redact.Scrubber
	require.EqualError(t, none.Error(errors.New("planted-4711")), "planted-4711")
}

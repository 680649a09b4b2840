package terminal_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/terminal"
)

// hostile has a character of each kind that a terminal must not show.
const hostile = "\x00\x1b\r\b\x7f\u0085\u009b\u00ad\u034f\u0378\u115f\u200b\u200d\u202e\u2028\u2029\u2066\u3164\ue000\ufeff\U000e0041\U000e0100\U0010ffff"

// visible is text of many languages, with marks and pictures.
const visible = "naïve Ελληνικά русский עברית العربية हिन्दी ไทย 日本語 한국어 e\u0301 ❤\ufe0f 😀 «–…» 1\u00a0000"

func TestVisibleTextStays(t *testing.T) {
	t.Parallel()
	require.Equal(t, visible, terminal.Line(visible))
	require.Equal(t, "a\tb\r\nc", terminal.Text("a\tb\r\nc"))
	require.Equal(t, `a b\n`, terminal.Line("a\tb\n"))
	require.Equal(t, "a\ufffdb", terminal.Line("a\x9bb"), "no UTF-8")
}

func TestTextIsEscapedAsInJSON(t *testing.T) {
	t.Parallel()
	for _, r := range hostile {
		require.True(t, terminal.Unsafe(r), "%U", r)
		escaped := terminal.Text(string(r))
		require.NotRegexp(t, `[^ -~]`, escaped)
		var value string
		require.NoError(t, json.Unmarshal([]byte(`"`+escaped+`"`), &value), escaped)
		require.Equal(t, string(r), value)
	}
	require.Equal(t, `{"a":"\u202e\udb40\udc41"}`, string(terminal.JSON([]byte("{\"a\":\"\u202e\U000e0041\"}"))))
}

func TestColoursStayInDrawnText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"\x1b[31mfailed\x1b[0m \u202e\n":             "\x1b[31mfailed\x1b[0m \\u202e\n",
		"\x1b[2J \x1b]52;c;QQ==\x07 \x1b[1;31m \x1b": "\\u001b[2J \\u001b]52;c;QQ==\\u0007 \\u001b[1;31m \\u001b",
		"\x1b[m\x1b[123m\x1b\x1b[2m":                 "\\u001b[m\\u001b[123m\\u001b\x1b[2m",
	} {
		var file, terminalBytes bytes.Buffer
		require.NoError(t, terminal.Draw(&file, text))
		require.Equal(t, want, file.String())
		require.NoError(t, terminal.Draw(terminal.NewScreen(&terminalBytes, nil), text))
		require.Equal(t, want, terminalBytes.String())
	}
	var out bytes.Buffer
	screen := terminal.NewScreen(&out, func() int { return 40 })
	require.Equal(t, 40, screen.Columns())
	require.NoError(t, terminal.Redraw(screen, 0, "a\x1b[K"))
	require.NoError(t, terminal.Redraw(screen, 2, "b"))
	require.Equal(t, "\r\x1b[Ka\\u001b[K\x1b[2A\x1b[Jb", out.String())
}

// A write may end within a character or a line end.
func TestWritesOfAnySizeAreEscaped(t *testing.T) {
	t.Parallel()
	text := visible + hostile + "\r\n\x9b.\xe2.\x1b[31m"
	want := terminal.Text(text)
	require.True(t, strings.HasPrefix(want, visible))
	for size := 1; size < 6; size++ {
		var out bytes.Buffer
		screen := terminal.NewScreen(&out, nil)
		for rest := text; rest != ""; {
			part := rest[:min(size, len(rest))]
			n, err := screen.Write([]byte(part))
			require.NoError(t, err)
			require.Equal(t, len(part), n)
			rest = rest[len(part):]
		}
		require.Equal(t, want, out.String(), size)
	}
}

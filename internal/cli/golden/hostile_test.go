package golden_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// hostile is text that would steer a terminal, or show other text than there is: it clears the screen, sets the
// clipboard, returns to the beginning of the line, deletes, turns the text around, is not visible, or is nothing that
// Unicode has.
const hostile = "\x1b[2J\x1b]52;c;QQ==\x07\r\b\x7f\u009b2J\u0085\u202e\u2066\u200b\u2028\u2029\u00ad\ufeff\ue000\u0378\u3164\U000e0041\U000e0100"

// own are the sequences of the program: colours, and the replacement of its own lines.
var own = regexp.MustCompile("␛\\[[0-9]{1,2}m|␍␛\\[K|␛\\[[0-9]+A␛\\[J")

// exact reports whether a command writes a file or a value to a pipe, where a program needs its exact bytes.
func exact(line string) bool {
	return strings.Contains(line, " export") || strings.Contains(line, "--source") || strings.Contains(line, "--jq") ||
		strings.Contains(line, "-o name") ||
		strings.HasPrefix(line, "workflow diff") || strings.HasPrefix(line, "run value") ||
		strings.HasPrefix(line, "token create") || strings.HasPrefix(line, "webhook")
}

// Whatever a server answers, no command writes characters to a terminal that steer it, or that are not visible; and not
// to a pipe either, unless a program needs them.
func TestAnswersCannotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	shown := 0
	for _, e := range examples() {
		e.suffix = hostile
		for _, format := range []string{"", " -o yaml", " -o json"} {
			if format != "" && !hasWide(e.line) {
				continue
			}
			with := e
			with.line += format
			t.Run(e.name+format, func(t *testing.T) {
				t.Parallel()
				for _, where := range everywhere()[:3] {
					if format != "" && where.columns == 60 { // the width has no effect
						continue
					}
					text := with.run(t, where)
					if where.columns == 0 && exact(with.line) {
						continue
					}
					text = own.ReplaceAllString(text, "")
					for _, r := range text {
						require.True(t, r == '\n' || unicode.IsGraphic(r) && r != '\u3164' && r != '\U000e0100' && r != '␛' && r != '␍',
							"%U on a %s: %q", r, where.name, text)
					}
				}
			})
			shown++
		}
	}
	require.Greater(t, shown, 200)
}

package runcmd

import (
	"testing"

	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
)

func TestUnprintedLinesOfALog(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stream  *signalboxv1.LogStream
		printed int64
		want    []string
		missing string
	}{
		"nothing":        {},
		"all":            {stream: &signalboxv1.LogStream{Text: "a\nb\n"}, want: []string{"a", "b"}},
		"the rest":       {stream: &signalboxv1.LogStream{Text: "a\nb\nc"}, printed: 2, want: []string{"c"}},
		"nothing new":    {stream: &signalboxv1.LogStream{Text: "a\nb\n"}, printed: 2, want: []string{}},
		"a later window": {stream: &signalboxv1.LogStream{Text: "c\nd\n", SkippedLines: 2}, printed: 3, want: []string{"d"}},
		"a gap": {stream: &signalboxv1.LogStream{Text: "c\n", SkippedLines: 2, SkippedBytes: 4}, want: []string{"c"},
			missing: "2 lines"},
		"the end of a long line": {stream: &signalboxv1.LogStream{Text: "z", SkippedBytes: 2000}, want: []string{"z"},
			missing: "the first 2 kB"},
		"fewer lines than before": {stream: &signalboxv1.LogStream{Text: "mark\n"}, printed: 3, want: []string{}},
	} {
		fresh, missing := unprinted(tt.stream, tt.printed)
		require.Equal(t, tt.want, fresh, name)
		require.Equal(t, tt.missing, missing, name)
	}
}

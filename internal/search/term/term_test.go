package term_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/search/term"
)

func TestTextsAreDividedIntoWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                         nil,
		"%_'\"\\\x00‮":             nil,
		"Order 4711":               {"order", "4711"},
		"order=4711, order-4711":   {"order", "4711"},
		"INV4711":                  {"inv4711", "4711"},
		"v12":                      {"v12"},
		"7f3a91bc":                 {"7f3a91bc"},
		"Größe ÄPFEL":              {"größe", "äpfel"},
		"中文 ‮4711":                 {"中文", "4711"},
		"a " + redact.Mark + " b":  {"a", "b"},
		redact.Mark + redact.Mark:  nil,
		strings.Repeat("x", 5_000): {strings.Repeat("x", term.MaxWord)},
		"a\xffb":                   {"a", "b"},
	} {
		require.Equal(t, want, term.Of(text), "%q", text)
	}
	require.Len(t, term.Of(strings.Repeat("a ", 10)+numbers(3000)), term.MaxWords)
	require.Equal(t, []string{"inv4711"}, term.Words("INV4711 inv4711"), "a search is for the whole word")
}

func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat("n", i%40+1) + "x ")
		b.WriteString(strings.Repeat("m", i/40+1) + "y ")
	}
	return b.String()
}

func TestWordsMatchBeginnings(t *testing.T) {
	t.Parallel()
	require.True(t, term.Match(term.Words("ord 47"), "order", "4711"))
	require.True(t, term.Match(term.Words("4711"), "INV4711"))
	require.True(t, term.Match(nil, "x"))
	require.False(t, term.Match(term.Words("711"), "4711"))
	require.False(t, term.Match(term.Words("order 4712"), "order 4711"))
	require.False(t, term.Match(term.Words("redacted"), redact.Mark))
}

func TestHighlightsShowWhatMatched(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, search string
		want         []term.Part
	}{
		{"order-4711 is late", "4711 ord", []term.Part{
			{"ord", true}, {"er-", false}, {"4711", true}, {" is late", false}}},
		{"INV4711", "4711", []term.Part{{"INV", false}, {"4711", true}}},
		{"INV4711", "inv47", []term.Part{{"INV47", true}, {"11", false}}},
		{"ÄPFEL", "äp", []term.Part{{"ÄP", true}, {"FEL", false}}},
		{"nothing", "4711", []term.Part{{"nothing", false}}},
		{"", "4711", nil},
	} {
		got := term.Highlight(c.text, term.Words(c.search))
		require.Equal(t, c.want, got, c.text)
	}
}

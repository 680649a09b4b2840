package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/internal/stopwatch"
)

// nested returns a text in JSON strings within JSON strings.
func nested(text string, levels int) string {
	for range levels {
		quoted, _ := json.Marshal(text) //nolint:errchkjson // texts always encode
		text = `{"said":` + string(quoted) + "}"
	}
	return text
}

// encodings returns a text in the encodings that services, proxies and programs use.
func encodings(text string) map[string]string {
	all := map[string]string{"plain": text}
	for level := 1; level <= 3; level++ {
		all[fmt.Sprintf("JSON %d", level)] = nested(text, level)
	}
	all["URL query"], all["URL path"] = url.QueryEscape(text), url.PathEscape(text)
	all["URL twice"] = url.QueryEscape(url.QueryEscape(text))
	all["HTML"] = html.EscapeString(text)
	all["XML"] = strings.NewReplacer("&#34;", "&quot;", "&#39;", "&apos;").Replace(html.EscapeString(text))
	all["hex"], all["HEX"] = hex.EncodeToString([]byte(text)), strings.ToUpper(hex.EncodeToString([]byte(text)))
	all["hex of JSON"] = hex.EncodeToString([]byte(nested(text, 1)))
	for name, encoding := range map[string]*base64.Encoding{
		"std": base64.StdEncoding, "URL": base64.URLEncoding, "raw": base64.RawStdEncoding, "raw URL": base64.RawURLEncoding,
	} {
		for before := range 3 {
			all[fmt.Sprintf("base64 %s %d", name, before)] = encoding.EncodeToString(
				[]byte(strings.Repeat("u", before) + text + ":tail"))
			all[fmt.Sprintf("base64 %s of JSON %d", name, before)] = encoding.EncodeToString(
				[]byte(strings.Repeat(" ", before) + nested(text, 1)))
		}
	}
	return all
}

func TestTextsAreFoundInEveryEncoding(t *testing.T) {
	t.Parallel()
	p := redact.For(parse(t, document))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("abcXYZ019 /+=&%\"'<>\\\n-_~éß€😀")), 8, 40, -1).Draw(t, "text")
		var secrets redact.SecretSet
		secrets.Add("another-text", text)
		for name, encoded := range encodings(text) {
			shown, changed := secrets.Text("<" + encoded + ">")
			require.True(t, changed, "%s: %q", name, encoded)
			require.Contains(t, shown, redact.Mark, name)
			require.NotContains(t, shown, text, name)
			quoted, _ := json.Marshal(map[string]string{"key": encoded})
			value, _ := p.Value(redact.Location{Pointer: "/do/0/x"}, quoted, &secrets)
			require.Contains(t, string(value), redact.Mark, "%s in a value", name)
			require.True(t, json.Valid(value))
			require.Contains(t, secrets.In(quoted), text, name)
		}
	})
}

func TestTextsAreFoundAsOtherLanguagesWriteThem(t *testing.T) {
	t.Parallel()
	const text = `käse/"né" & <€>😀'`
	var secrets redact.SecretSet
	secrets.Add(text)
	for name, encoded := range map[string]string{
		"Python's JSON":      `k\u00e4se/\"n\u00e9\" & <\u20ac>\ud83d\ude00'`,
		"PHP's JSON":         `k\u00e4se\/\"n\u00e9\" & <\u20ac>\ud83d\ude00'`,
		"Python's JSON in":   `k\\u00e4se/\\\"n\\u00e9\\\" & <\\u20ac>\\ud83d\\ude00'`,
		"encodeURIComponent": `k%C3%A4se%2F%22n%C3%A9%22%20%26%20%3C%E2%82%AC%3E%F0%9F%98%80'`,
		"encodeURI":          `k%C3%A4se/%22n%C3%A9%22%20&%20%3C%E2%82%AC%3E%F0%9F%98%80'`,
		"lower case":         `k%c3%a4se%2f%22n%c3%a9%22+%26+%3c%e2%82%ac%3e%f0%9f%98%80%27`,
		"Python's HTML":      `käse/&quot;né&quot; &amp; &lt;€&gt;😀&#x27;`,
	} {
		shown, changed := secrets.Text("a " + encoded + " b")
		require.True(t, changed, name)
		require.Equal(t, "a "+redact.Mark+" b", shown, name)
	}
}

func TestFindingsThatOverlapGetOneMark(t *testing.T) {
	t.Parallel()
	var secrets redact.SecretSet
	secrets.Add("abcdefghij", "fghijklmno", "abcdefgh")
	for text, want := range map[string]string{
		"xabcdefghijklmnoy":    "xMy",
		"xabcdefghy":           "xMy",
		"abcdefghijabcdefgh":   "MM",
		"abcdefg fghijklmno":   "abcdefg M",
		"nothing of it at all": "nothing of it at all",
	} {
		shown, _ := secrets.Text(text)
		require.Equal(t, strings.ReplaceAll(want, "M", redact.Mark), shown)
	}
}

// TestMarksStayAsTheyAre checks that marks are not searched for: each redaction would make the text longer.
func TestMarksStayAsTheyAre(t *testing.T) {
	t.Parallel()
	var secrets redact.SecretSet
	require.Empty(t, secrets.Add("redacted", redact.Mark, "redacted⟧"))
	shown, changed := secrets.Text("a " + redact.Mark)
	require.False(t, changed)
	require.Equal(t, "a "+redact.Mark, shown)
}

// TestTextsAddedOneAfterTheOther checks that the order of additions makes no difference.
func TestTextsAddedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var one, all redact.SecretSet
	var texts []string
	for range 300 {
		texts = append(texts, fmt.Sprintf("t%07d%d", random.IntN(10_000_000), random.IntN(100)))
		one.Add(texts[len(texts)-1])
	}
	all.Add(texts...)
	text := "x " + strings.Join(texts, " or ") + " y"
	first, _ := one.Text(text)
	second, _ := all.Text(text)
	require.Equal(t, second, first)
	for _, secret := range texts {
		require.NotContains(t, first, secret)
	}
}

// TestSearchIsBounded checks that no input makes the search slow.
func TestSearchIsBounded(t *testing.T) {
	t.Parallel()
	for name, texts := range map[string][]string{
		"equal beginnings": many(3000, func(i int) string { return fmt.Sprintf("sk_live_%08d", i) }),
		"one in another":   many(700, func(i int) string { return strings.Repeat("a", 8+i) + "b" }),
		"large":            many(3, func(i int) string { return strings.Repeat("é\"<\\", 8000) + fmt.Sprint(i) }),
	} {
		var secrets redact.SecretSet
		watch := stopwatch.Start(t)
		for _, text := range texts {
			secrets.Add(text)
		}
		for _, text := range []string{
			strings.Repeat("a", 100_000), strings.Repeat("sk_live_", 12_500), strings.Repeat("é\"<\\", 20_000)} {
			secrets.Text(text)
		}
		require.Less(t, watch.Elapsed(), 10*time.Second, name)
		t.Log(name, watch.Elapsed())
	}
}

func many(n int, text func(i int) string) (texts []string) {
	for i := range n {
		texts = append(texts, text(i))
	}
	return texts
}

func BenchmarkValueOf100kBWith100Texts(b *testing.B) {
	p := redact.For(parse(b, document))
	var secrets redact.SecretSet
	secrets.Add(many(100, func(i int) string { return fmt.Sprintf("sécret/%d+\"%d\"", i, i*i) })...)
	rows := strings.Join(many(1500, func(i int) string {
		return fmt.Sprintf(`{"id":%d,"name":"customer %d","price":12.50,"tags":["a","b"]}`, i, i)
	}), ",")
	value := json.RawMessage(`{"rows":[` + rows + `]}`)
	b.Run("value", func(b *testing.B) {
		b.SetBytes(int64(len(value)))
		for b.Loop() {
			p.Value(redact.Location{Pointer: "/do/0/a"}, value, &secrets)
		}
	})
	b.Run("text", func(b *testing.B) {
		text := string(value)
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			secrets.Text(text)
		}
	})
	b.Run("build", func(b *testing.B) {
		for b.Loop() {
			var fresh redact.SecretSet
			fresh.Add(secrets.Texts()...)
		}
	})
}

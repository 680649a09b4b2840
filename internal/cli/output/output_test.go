package output_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/output"
)

func TestTablesAlignWidenAndEscape(t *testing.T) {
	t.Parallel()
	row := func(id, status, why string) output.Row { return output.Cells("ID", id, "STATUS", status, "+WHY", why) }
	rows := func() []output.Row {
		return []output.Row{row("ä", "completed", "x"), row("long-id", "a\x1b[31m\n", "\u009b")}
	}
	var table, wide, colored bytes.Buffer
	require.NoError(t, output.Rows(&table, output.Table, output.Style{}, rows()))
	require.Equal(t, "ID       STATUS\nä        completed\nlong-id  a\\u001b[31m\\n\n", table.String())
	require.NoError(t, output.Rows(&wide, output.Wide, output.Style{}, rows()))
	require.Equal(t, "ID       STATUS         WHY\nä        completed      x\nlong-id  a\\u001b[31m\\n  \\u009b\n",
		wide.String())
	table.Reset()
	require.NoError(t, output.Rows(&table, output.Wide, output.Style{}, []output.Row{row("1", "", "x"), row("2", "", "")}))
	require.Equal(t, "ID  STATUS  WHY\n1           x\n2\n", table.String())
	require.NoError(t, output.Rows(&colored, output.Table, output.Style{Color: true},
		[]output.Row{row("1", "failed", "")}))
	require.Contains(t, colored.String(), "1   \x1b[31mfailed\x1b[0m\n")
}

// A table that does not fit the terminal loses its empty columns, then parts of IDs and texts; at last, each value gets
// a line.
func TestTablesFitTheTerminal(t *testing.T) {
	t.Parallel()
	rows := func() []output.Row {
		return []output.Row{
			output.Cells("ID", "one", "STATUS", "failed", "ERROR", "", "TITLE", "a long title"),
			output.Cells("ID", "two", "STATUS", "", "ERROR", "", "TITLE", "b"),
		}
	}
	for width, want := range map[int]string{
		0:  "ID   STATUS  ERROR  TITLE\none  failed         a long title\ntwo                 b\n",
		32: "ID   STATUS  ERROR  TITLE\none  failed         a long title\ntwo                 b\n",
		31: "ID   STATUS  TITLE\none  failed  a long title\ntwo          b\n",
		24: "ID      one\nSTATUS  failed\nTITLE   a long title\n\nID     two\nTITLE  b\n",
	} {
		var out bytes.Buffer
		require.NoError(t, output.Rows(&out, output.Table, output.Style{Width: width}, rows()))
		require.Equal(t, want, out.String(), width)
	}
	var out bytes.Buffer
	require.NoError(t, output.Rows(&out, output.Table, output.Style{Width: 5, NoHeaders: true}, rows()))
	require.Equal(t, "one  failed  a long title\ntwo          b\n", out.String(), "scripts read lines")
}

func TestTablesThatDoNotFitAreShortened(t *testing.T) {
	t.Parallel()
	const first, second = "019a4f2e-9e07-7c54-8a3b-5d1c22f0ab71", "019a4f2e-9e07-7c55-8a3b-5d1c22f0ab72"
	rows := func(second string) []output.Row {
		return []output.Row{
			output.Cells("#ID", first, "STATUS", "failed", "ERROR", "the service did not answer in time"),
			output.Cells("#ID", second, "STATUS", "", "ERROR", "refused"),
		}
	}
	print := func(format output.Format, width int, second string) string {
		var out bytes.Buffer
		require.NoError(t, output.Rows(&out, format, output.Style{Width: width}, rows(second)))
		return out.String()
	}
	require.Equal(t, "ID        STATUS  ERROR\n22f0ab71  failed  the service did not answer in time\n22f0ab72          refused\n",
		print(output.Table, 52, second))
	require.Equal(t, "ID        STATUS  ERROR\n22f0ab71  failed  the service …\n22f0ab72          refused\n",
		print(output.Table, 31, second))
	require.Contains(t, print(output.Table, 52, "119a4f2e-9e07-7c54-8a3b-5d1c22f0ab71"), first, "the ends are the same")
	require.NotContains(t, print(output.Table, 29, second), "…", "nothing is cut in vain")
	var spare bytes.Buffer
	require.NoError(t, output.Rows(&spare, output.Table, output.Style{Width: 14}, []output.Row{
		output.Cells("A", "1", "-B", "two", "-LONGER", "3", "C", "1234")}))
	require.Equal(t, "A  B    C\n1  two  1234\n", spare.String())
	require.Contains(t, print(output.Wide, 52, second), "ERROR   the service did not answer in time\n")
}

func TestCardsOmitEmptyFields(t *testing.T) {
	t.Parallel()
	var card bytes.Buffer
	require.NoError(t, output.Card(&card, output.Style{}, []output.Field{
		{Name: "id", Value: "r1"}, {Name: "nothing"}, {Name: "status", Value: "failed"},
		{Name: "source", Value: "a:\n  b\x07\n"},
	}))
	require.Equal(t, "id      r1\nstatus  failed\nsource\n  a:\n    b\\u0007\n", card.String())
}

func TestCardsWrapWordsOnTerminals(t *testing.T) {
	t.Parallel()
	fields := []output.Field{
		{Name: "id", Value: "0199a4f2-9e07-7c54"}, {Name: "detail", Value: "no worker polls the  task queue"},
		output.JSONField("input", `{"a": "b c d e f g"}`)}
	var narrow, pipe bytes.Buffer
	require.NoError(t, output.Card(&narrow, output.Style{Width: 20}, fields))
	require.Equal(t, "id      0199a4f2-9e07-7c54\ndetail  no worker\n        polls the\n        task queue\ninput   "+
		"{\"a\": \"b c d e f g\"}\n", narrow.String())
	require.NoError(t, output.Card(&pipe, output.Style{}, fields))
	require.Contains(t, pipe.String(), "detail  no worker polls the  task queue\n")
}

func TestJSONAndYAMLAreExact(t *testing.T) {
	t.Parallel()
	run := &signalboxv1.Run{Id: "r1", Status: "completed", Output: &signalboxv1.JsonValue{
		Json: `{"z":12345678901234567890,"a":1.50,"s":"yes","e":"","n":null,"t":true,"l":[],"o":{},"u":"😀","m":"x\ny","i":"123"}`,
	}}
	var json, yaml bytes.Buffer
	require.NoError(t, output.Message(&json, output.JSON, run))
	require.Contains(t, json.String(), "  \"status\": \"completed\",\n")
	require.Contains(t, json.String(), `"z": 12345678901234567890,`)
	require.NoError(t, output.Message(&yaml, output.YAML, run))
	require.Contains(t, yaml.String(), `output:
  z: 12345678901234567890
  a: 1.50
  s: "yes"
  e: ""
  "n": null
  t: true
  l: []
  o: {}
  u: "\U0001F600"
  m: |-
    x
    y
  i: "123"
`)
	json.Reset()
	require.NoError(t, output.List(&json, output.JSON, []*signalboxv1.Project{}))
	require.Equal(t, "[]\n", json.String())
	json.Reset()
	require.NoError(t, output.Value(&json, output.JSON, map[string]string{"a": "<b>"}))
	require.Equal(t, "{\n  \"a\": \"<b>\"\n}\n", json.String())
	require.Error(t, output.Message(&json, output.JSON, &signalboxv1.Run{Input: &signalboxv1.JsonValue{Json: "{"}}))
}

func TestTimes(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m", 47 * time.Hour: "47h", 49 * time.Hour: "2d"} {
		require.Equal(t, want, output.Age(d))
	}
	for d, want := range map[time.Duration]string{
		1500: "2µs", 1234567: "1ms", 1234567890: "1.23s", 125 * time.Second: "2m5s"} {
		require.Equal(t, want, output.Took(d))
	}
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 1234567: "1ms", 1999 * time.Millisecond: "1s", 192 * time.Second: "3m12s",
		time.Hour: "1h", 24 * time.Hour: "1d", 3 * time.Minute: "3m",
		26*time.Hour + 90*time.Minute: "1d3h",
	} {
		require.Equal(t, want, output.Span(d))
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"1 run": output.Count(1, "run"), "0 runs": output.Count(0, "run"), "2 entries": output.Count(2, "entry"),
		"3 batches": output.Count(3, "batch"),
	} {
		require.Equal(t, want, got)
	}
}

// A card shows the beginning of a large value, and says so.
func TestCardsShowTheBeginningOfLargeValues(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"many lines":  "[" + strings.Repeat("1,", 10_000) + "1]",
		"a long text": `{"a":"` + strings.Repeat("é", 50_000) + `"}`,
	} {
		var out bytes.Buffer
		require.NoError(t, output.Card(&out, output.Style{}, []output.Field{output.JSONField("input", text)}), name)
		require.Less(t, out.Len(), 10_000, name)
		require.Contains(t, out.String(), fmt.Sprintf("%d bytes in all; -o json has them", len(text)), name)
	}
}

// JSON and YAML keep their values, and have no characters that a terminal would obey or hide.
func TestJSONAndYAMLEscapeForTheSameValue(t *testing.T) {
	t.Parallel()
	const hostile = "a\u007f\u009b\u0085\u202e\u200b\u2028\ue000\U000e0041z"
	run := &signalboxv1.Run{Id: hostile, Labels: map[string]string{hostile: "x"}}
	var line bytes.Buffer
	require.NoError(t, output.Line(&line, run))
	require.NotRegexp(t, `[^\n -~]`, line.String())
	for format, decode := range map[output.Format]func([]byte, any) error{
		output.JSON: json.Unmarshal, output.YAML: yaml.Unmarshal} {
		var out bytes.Buffer
		require.NoError(t, output.Message(&out, format, run))
		require.NotRegexp(t, `[^\n -~]`, out.String(), format)
		var decoded struct {
			ID     string
			Labels map[string]string
		}
		require.NoError(t, decode(out.Bytes(), &decoded), out.String())
		require.Equal(t, hostile, decoded.ID)
		require.Equal(t, map[string]string{hostile: "x"}, decoded.Labels)
	}
}

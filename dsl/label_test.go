package dsl_test

import (
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
)

const labelled = `
document:
  dsl: '1.0.3'
  namespace: shop
  name: order
  version: '1.0.0'
  metadata:
    labels:
      order: ${ .order.id }
      team: payments
      region: ${ $input.region // "eu" }
do:
  - note: {set: {n: 1}}
`

func TestLabelsOfADocument(t *testing.T) {
	t.Parallel()
	doc, violations := dsl.Parse([]byte(labelled))
	require.Empty(t, violations)
	values := map[string]any{}
	for _, l := range doc.Labels {
		value, err := l.Eval(map[string]any{"order": map[string]any{"id": 4711}}, nil)
		require.NoError(t, err)
		values[l.Key] = value
	}
	require.Equal(t, map[string]any{"order": 4711, "team": "payments", "region": "eu"}, values)
	_, err := doc.Labels[0].Eval("text", nil)
	require.ErrorContains(t, err, "expected an object")
}

func TestLabelLimits(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"order": "", "shop.example/Order_id-2": "", strings.Repeat("k", 63): "",
		"": "is empty", strings.Repeat("k", 64): "has 64 characters, more than 63", "a b": "other characters",
		"a=b": "other characters",
		"a:b": "other characters", "größe": "other characters", "a\n": "other characters",
	} {
		requireLabelViolation(t, want, dsl.LabelKeyViolation(key), key)
	}
	for value, want := range map[string]string{
		"4711": "", "a b = ü €": "", "<script>alert(1)</script>": "", strings.Repeat("v", 256): "",
		"": "is empty", strings.Repeat("v", 257): "has 257 bytes, more than 256", "a\xff": "is not UTF-8", "a\nb": "U+000A",
		"a\x00":    "U+0000",
		"a\u202eb": "U+202E", "a\u200bb": "U+200B",
	} {
		requireLabelViolation(t, want, dsl.LabelValueViolation(value), value)
	}
}

func requireLabelViolation(t *testing.T, want, got, of string) {
	t.Helper()
	if want == "" {
		require.Empty(t, got, "%q", of)
		return
	}
	require.Contains(t, got, want, "%q", of)
}

func TestLabelValues(t *testing.T) {
	t.Parallel()
	digits, _ := new(big.Int).SetString("12345678901234567890123", 10)
	for _, tt := range []struct {
		result          any
		want, violation string
	}{
		{nil, "", ""}, {"", "", ""}, {"a", "a", ""}, {true, "true", ""}, {4711, "4711", ""}, {1.5, "1.5", ""},
		{digits, "12345678901234567890123", ""},
		{map[string]any{"secret": 1}, "", "is an object instead of a text, a number or a boolean"},
		{[]any{"a"}, "", "is an array instead of a text, a number or a boolean"},
		{"a\tb", "a\tb", "has the character U+0009, which is not printable"},
	} {
		value, violation := dsl.LabelValue(tt.result)
		require.Equal(t, []string{tt.want, tt.violation}, []string{value, violation})
	}
}

package redact_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/jq"
	"github.com/signalbox-dev/signalbox/internal/redact"
)

// MayHide returns true for every value in which Value hides something: over random values, with and without secrets, in
// every location.
func TestMayHideFindsAllThatValueHides(t *testing.T) {
	t.Parallel()
	doc, problems := dsl.Parse([]byte(`
document: {dsl: '1.0.0', namespace: test, name: test, version: '1.0.0', metadata: {sensitive: [/input/a/b, /tasks/s/output/list/*/0]}}
do: [{s: {set: {x: 1}}}]`))
	require.False(t, problems.HasErrors(), "%v", problems)
	policies := []*redact.Policy{redact.For(doc), redact.Everything(), redact.For(doc).With(&redact.Policy{})}
	locations := []redact.Location{
		{}, {Output: true}, {Pointer: "/do/0/s", Task: "s"}, {Pointer: "/do/0/s", Task: "s", Output: true}}
	random := rand.New(rand.NewPCG(1, 2))
	var secrets redact.SecretSet
	secrets.Add("planted-text", "1234567890", "12345.6789")
	hidden, kept := 0, 0
	for range 20_000 {
		v := randomValue(random, 4)
		encoded, err := jq.EncodeJSON(v)
		require.NoError(t, err)
		for _, policy := range policies {
			for _, at := range locations {
				for _, known := range []*redact.SecretSet{nil, &secrets} {
					shown, _ := policy.Value(at, encoded, known)
					may := policy.MayHide(at, v, known)
					if !bytes.Equal(shown, encoded) {
						hidden++
						require.True(t, may, "%+v: %s is shown as %s", at, encoded, shown)
					} else if !may {
						kept++
					}
				}
			}
		}
	}
	require.Positive(t, hidden)
	require.Positive(t, kept)
}

func randomValue(random *rand.Rand, depth int) any {
	scalars := []any{
		nil, true, false, 0, 1234567890, 12345.6789, 1.5, "", "x", "planted-text", "with planted-text inside", "\n",
		json.Number("1234567890"), "Bearer planted-text",
	}
	if depth == 0 || random.IntN(3) == 0 {
		return scalars[random.IntN(len(scalars))]
	}
	if random.IntN(2) == 0 {
		list := make([]any, random.IntN(4))
		for i := range list {
			list[i] = randomValue(random, depth-1)
		}
		return list
	}
	names := []string{"a", "b", "list", "password", "Db_Password", "*", "planted-text", "0", "token\u00e9", ""}
	object := map[string]any{}
	for range random.IntN(4) {
		object[names[random.IntN(len(names))]] = randomValue(random, depth-1)
	}
	return object
}

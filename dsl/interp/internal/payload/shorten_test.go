package payload_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl/interp/internal/payload"
	"github.com/signalbox-dev/signalbox/dsl/jq"
)

const limit = 16 << 10

func TestSmallValuesAreWhole(t *testing.T) {
	t.Parallel()
	var s payload.Shortener
	for _, v := range []any{nil, true, 1, "text", []any{1, "a"}, map[string]any{"a": map[string]any{}},
		strings.Repeat("x", limit-2)} {
		data, size := s.Encode(v, limit)
		require.Zero(t, size)
		require.Equal(t, payload.Encode(v), data)
	}
}

func TestLargeValuesKeepTheirTypes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 1000)
	orders := make([]any, 1000)
	for i := range orders {
		orders[i] = map[string]any{"id": i, "customer": fmt.Sprintf("C-%d", i), "note": long, "lines": []any{1, 2, 3}}
	}
	wide := map[string]any{}
	for i := range 50_000 {
		wide[fmt.Sprintf("name-%05d", i)] = i
	}
	deep := any(long + long + long + long)
	for range 900 {
		deep = []any{deep}
	}
	for name, tt := range map[string]struct {
		value any
		want  []string
	}{
		"text":       {strings.Repeat("é", limit), []string{`"éé`, ` … [cut: 32768 bytes in all]"`}},
		"escapes":    {strings.Repeat("\x01\"", limit), []string{`\u0001\"`, ` … [cut: 32768 bytes in all]"`}},
		"no Unicode": {strings.Repeat("\xff", limit), []string{` … [cut: 16384 bytes in all]"`}},
		"array": {orders,
			[]string{`[{"customer":"C-0","id":0,"lines":[1,2,3],"note":"long long`, `{"customer":"C-1"`}},
		"object": {map[string]any{"orders": orders, "total": 12.5, "ok": true, "a": long + long + long + long},
			[]string{`"a":"long `, `"ok":true`, `"orders":[{`, `"total":12.5`}},
		"many members":   {wide, []string{`"name-00000":0`, `"name-00001":1`}},
		"deep":           {deep, []string{`[[[[`}},
		"a long name":    {map[string]any{strings.Repeat("n", limit): 1, "z": 2}, []string{`{"z":2}`}},
		"a long number":  {[]any{1, new(big.Int).Lsh(big.NewInt(1), 200_000), 3}, []string{`[1]`}},
		"only a number":  {new(big.Int).Lsh(big.NewInt(1), 200_000), []string{`too long`}},
		"empty and long": {[]any{[]any{}, map[string]any{}, nil, orders}, []string{`[[],{},null,[{"customer":"C-0"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s payload.Shortener
			data, size := s.Encode(tt.value, limit)
			whole := payload.Encode(tt.value)
			require.Equal(t, len(whole), size)
			require.LessOrEqual(t, len(data), 2048)
			for _, part := range tt.want {
				require.Contains(t, string(data), part)
			}
			shown, err := jq.DecodeJSON(data)
			require.NoError(t, err)
			if name != "only a number" {
				requirePart(t, tt.value, shown, "")
			}
			again, _ := s.Encode(tt.value, limit)
			require.Equal(t, data, again)
			var other payload.Shortener
			again, _ = other.Encode(tt.value, limit)
			require.Equal(t, data, again, "the same in each process")
		})
	}
}

// requirePart requires that each part of a shortened value has the type and the place of the part that it shows.
func requirePart(t *testing.T, whole, shown any, at string) {
	t.Helper()
	require.Equal(t, jq.TypeName(whole), jq.TypeName(shown), at)
	switch shown := shown.(type) {
	case string:
		text, _ := whole.(string)
		if beginning, _, cut := strings.Cut(shown, " … [cut: "); cut {
			require.True(t, strings.HasPrefix(strings.ToValidUTF8(text, "�"), strings.TrimRight(beginning, "�")), at)
			return
		}
		require.Equal(t, text, shown, at)
	case []any:
		list, _ := whole.([]any)
		require.LessOrEqual(t, len(shown), len(list), at)
		for i, item := range shown {
			requirePart(t, list[i], item, fmt.Sprintf("%s/%d", at, i))
		}
	case map[string]any:
		object, _ := whole.(map[string]any)
		for name, member := range shown {
			require.Contains(t, object, name, at)
			requirePart(t, object[name], member, at+"/"+name)
		}
	default:
		require.Equal(t, whole, shown, at)
	}
}

func TestRandomValuesKeepTheirTypes(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var value func(depth int) any
	value = func(depth int) any {
		switch kind := random.IntN(7); {
		case kind == 0 && depth < 3:
			list := make([]any, random.IntN(16))
			for i := range list {
				list[i] = value(depth + 1)
			}
			return list
		case kind < 3 && depth < 3:
			object := map[string]any{}
			for range random.IntN(16) {
				object[strings.Repeat(string(rune('a'+random.IntN(26))), 1+random.IntN(40))] = value(depth + 1)
			}
			return object
		case kind == 3:
			return random.Int()
		case kind == 4:
			return random.Float64()
		default:
			return strings.Repeat(string(rune(random.IntN(3000))), random.IntN(2000))
		}
	}
	var s payload.Shortener
	large := 0
	for range 300 {
		v := value(0)
		data, size := s.Encode(v, limit)
		shown, err := jq.DecodeJSON(data)
		require.NoError(t, err)
		if size == 0 {
			continue
		}
		large++
		require.LessOrEqual(t, len(data), 2048)
		require.Equal(t, len(payload.Encode(v)), size)
		decoded, err := jq.DecodeJSON(payload.Encode(v)) // as JSON writes numbers and texts
		require.NoError(t, err)
		requirePart(t, decoded, shown, "")
	}
	require.Greater(t, large, 30)
}

func TestIdentical(t *testing.T) {
	t.Parallel()
	list, object := []any{1, 2}, map[string]any{"a": 1}
	require.True(t, payload.Identical(list, list))
	require.True(t, payload.Identical(object, object))
	require.True(t, payload.Identical("a", "a"))
	require.False(t, payload.Identical(list, []any{1, 2}))
	require.False(t, payload.Identical(list, list[:1]))
	require.False(t, payload.Identical(object, map[string]any{"a": 1}))
	require.False(t, payload.Identical(list, object))
	require.False(t, payload.Identical(1, 1))
}

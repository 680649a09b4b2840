package run

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
)

func TestFailureCauseLeavesOutValues(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ title, want string }{
		"nothing to replace":   {"the stock service did not answer", "the stock service did not answer"},
		"numbers":              {"503 after 3 attempts, 1.25 s", "# after # attempts, # s"},
		"a negative number":    {"balance is -12", "balance is -#"},
		"numbers in words":     {"order A-4711 of shop2", "order A-# of shop#"},
		"units":                {"no answer within 1500ms", "no answer within #ms"},
		"UUID":                 {"run 01a1ffc2-1f3c-7abc-8def-0123456789ab failed", "run # failed"},
		"UUID in a word":       {"order-01a1ffc2-abcd-7abc-8def-abcdefabcdef", "order-#"},
		"other identifier":     {"commit 9fceb02d0ae598e95dc970b74767f19372d61af8", "commit #"},
		"hexadecimal letters":  {"the facade is dead", "the facade is dead"},
		"double quotes":        {`field "name" is missing`, "field # is missing"},
		"single quotes":        {"field 'first name' is missing", "field # is missing"},
		"back quotes":          {"field `name` is missing", "field # is missing"},
		"typographic quotes":   {"field “name” is «missing»", "field # is #"},
		"apostrophes":          {"can't reach 'stock', don't retry", "can't reach #, don't retry"},
		"quote without an end": {`field "name is missing`, `field "name is missing`},
		"address":              {"dial tcp 10.0.0.17:8080: connection refused", "dial tcp #: connection refused"},
		"time":                 {"expired at 2026-11-23T17:09:23.5Z", "expired at #T#Z"},
		"spaces":               {"  too \t many\nlines ", "too many lines"},
		"other scripts":        {"заказ 4711 не найден", "заказ # не найден"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, "t 500 "+tt.want, failureCause(dsl.Error{Type: "t", Status: 500, Title: tt.title}))
		})
	}
	require.Equal(t, "t 0 no # here", failureCause(dsl.Error{Type: "t", Detail: "no 12 here"}),
		"the detail stands in for the title")
	require.Equal(t, "t 0 a", failureCause(dsl.Error{Type: "t", Title: "a", Detail: "b"}))
	require.Len(t, failureCause(dsl.Error{Title: strings.Repeat("ä", 10_000)}), len(" 0 ")+500)
}

func TestFailureGroupKey(t *testing.T) {
	t.Parallel()
	type failed struct {
		workflow string
		runError *dsl.Error
	}
	keyOf := func(change func(*failed)) string {
		f := failed{"shop/order", &dsl.Error{
			Type: "communication", Status: 503, Title: "no answer for order 4711", Detail: "a", Instance: "/do/3/reserve",
		}}
		change(&f)
		return failureGroupKey(f.workflow, f.runError)
	}
	key := keyOf(func(*failed) {})
	require.NoError(t, checkFailureGroup(key))
	require.Equal(t, key, keyOf(func(f *failed) { f.runError.Title = "no answer for order 12" }))
	require.Equal(t, key, keyOf(func(f *failed) { f.runError.Detail = "b" }))
	require.Equal(t, key, keyOf(func(f *failed) {
		f.runError.Instance = "/do/12/reserve"
	}), "a version with more tasks before it")
	seen := map[string]string{key: "the first"}
	for name, other := range map[string]func(*failed){
		"another workflow": func(f *failed) { f.workflow = "shop/return" },
		"another task":     func(f *failed) { f.runError.Instance = "/do/3/pay" },
		"an inner task":    func(f *failed) { f.runError.Instance = "/do/3/try/0/reserve" },
		"another status":   func(f *failed) { f.runError.Status = 502 },
		"another type":     func(f *failed) { f.runError.Type = "timeout" },
		"another title":    func(f *failed) { f.runError.Title = "no such order: 4711" },
		"no error":         func(f *failed) { f.runError = nil },
	} {
		key := keyOf(other)
		require.NoError(t, checkFailureGroup(key), name)
		require.Empty(t, seen[key], name)
		seen[key] = name
	}
	own := func(instance string) string { return keyOf(func(f *failed) { f.runError.Instance = instance }) }
	require.Equal(t, own("/orders/1"), own("/orders/2"), "the document chose this instance")

	require.NoError(t, checkFailureGroup(""))
	for _, text := range []string{"x", key + "0", key[:16], strings.ToUpper("abcdefabcdefabcdefab"), key[1:] + "g"} {
		require.True(t, apperror.Is(checkFailureGroup(text), apperror.InvalidArgument), text)
	}
}

package function_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/conn"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/function"
)

type order struct {
	Article  string    `json:"article" jsonschema:"name of the article"`
	Quantity int       `json:"quantity"`
	Due      time.Time `json:"due,omitzero"`
}

type price struct {
	Amount float64 `json:"amount"`
}

func compute(context.Context, order) (price, error) { return price{Amount: 7}, nil }

func TestDefinitionIsAFunctionOfTheLanguage(t *testing.T) {
	t.Parallel()
	set, err := function.NewSet("pricing", function.New("price", "1.1.0", compute),
		function.New("price", "1.0.0", compute, function.Idempotent(),
			function.Output(&jsonschema.Schema{Type: "object", Required: []string{"amount"}})))
	require.NoError(t, err)
	list := set.Definitions()
	require.Len(t, list, 2)
	require.Equal(t, "price-1.0.0.json", list[0].File())
	require.Empty(t, dsl.CheckFunction("price:1.1.0@default", list[1].Source))
	var d map[string]any
	require.NoError(t, json.Unmarshal(list[1].Source, &d))
	with, ok := d["with"].(map[string]any)
	require.True(t, ok)
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", with["signature"])
	delete(with, "signature")
	got, err := json.Marshal(d)
	require.NoError(t, err)
	require.JSONEq(t, `{
		"input": {"schema": {"document": {"type": "object", "additionalProperties": false,
			"required": ["article", "quantity"], "properties": {
				"article": {"type": "string", "description": "name of the article"}, "quantity": {"type": "integer"},
				"due": {"type": "string"}}}}},
		"call": "go", "with": {"program": "pricing", "function": "price", "version": "1.1.0"},
		"output": {"schema": {"document": {"type": "object", "additionalProperties": false, "required": ["amount"],
			"properties": {"amount": {"type": "number"}}}}}}`, string(got))
	require.Contains(t, string(list[0].Source), `"idempotent": true`)
	again, err := function.NewSet("pricing", function.New("price", "1.1.0", compute))
	require.NoError(t, err)
	require.Equal(t, string(list[1].Source), string(again.Definitions()[0].Source))
}

func TestWrongFunctionsAreRefused(t *testing.T) {
	t.Parallel()
	good := func(context.Context, int) (int, error) { return 1, nil }
	for want, functions := range map[string][]function.Function{
		`the function "a:1.0.0": the type func() has no schema`: {
			function.New("a", "1.0.0", func(context.Context, func()) (int, error) { return 1, nil })},
		`the function "A:1.0.0": its definition is not valid: 12:17: value`: {function.New("A", "1.0.0", good)},
		`the version "1" of a Go function is not a semantic`:                {function.New("a", "1", good)},
		`the function "a:1.0.0" is there twice`:                             {function.New("a", "1.0.0", good), function.New("a", "1.0.0", good)},
		`the function "a" has no code`:                                      {function.New[int, int]("a", "1.0.0", nil)},
		`the schema of its input`: {function.New("a", "1.0.0", good,
			function.Input(&jsonschema.Schema{Pattern: "("}))},
	} {
		_, err := function.NewSet("p", functions...)
		require.ErrorContains(t, err, want)
	}
	_, err := function.NewSet("P", function.New("a", "1.0.0", good))
	require.ErrorContains(t, err, `"P" is not a name of a program`)
	set, err := function.NewSet("p", function.New("a", "1.0.0", good))
	require.NoError(t, err)
	m, err := conn.New(conn.Options{Client: client.Options{HostPort: "127.0.0.1:1"}})
	require.NoError(t, err)
	require.ErrorContains(t, set.Serve(m, function.Options{}), `"" is not a name of a project`)
	require.NoError(t, set.Serve(m, function.Options{Project: "shop"}))
	require.Error(t, set.Serve(m, function.Options{Project: "shop"}))
}

func TestCallOfATestIsEmpty(t *testing.T) {
	t.Parallel()
	require.Empty(t, function.CallOf(t.Context()))
}

func TestKeysThatCannotBeRead(t *testing.T) {
	t.Parallel()
	_, err := function.OpenKeys("k", map[string]string{"k": t.TempDir() + "/none"})
	require.ErrorContains(t, err, `read the keys of the platform: key "k" cannot be read`)
}

func ExampleNew() {
	set, err := function.NewSet("pricing", function.New("double", "1.0.0",
		func(_ context.Context, n int) (int, error) { return 2 * n, nil }, function.Idempotent()))
	if err != nil {
		panic(err)
	}
	for _, d := range set.Definitions() {
		fmt.Println(d.File())
	}
	// Output: double-1.0.0.json
}

package function_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/function"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

const here = project.Default

func newServices(t *testing.T) (context.Context, *function.Service, *workflow.Service) {
	t.Helper()
	kept, err := storetest.Open(t.Context(), t, store.Options{
		Driver: store.SQLite, DSN: storetest.SQLite(t), AutoMigrate: true, CallTimeout: time.Minute,
	})
	require.NoError(t, err)
	ctx := t.Context()
	t.Cleanup(func() { require.NoError(t, kept.Stop(context.WithoutCancel(ctx))) })
	require.NoError(t, kept.Start(ctx))
	functions := function.NewService(kept, kept, dsl.DefaultLimits(), time.Now)
	workflows := workflow.NewService(kept, kept, dsl.DefaultLimits(), time.Now)
	workflows.SetFunctions(functions)
	return auth.WithActor(ctx, auth.Actor{Kind: auth.KindLocal, Name: "ada"}), functions, workflows
}

func requireError(t *testing.T, err error, reason, text string) {
	t.Helper()
	f, ok := apperror.From(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, reason, f.Reason)
	require.Contains(t, f.Message, text)
}

func price(version, source string) function.Function {
	return function.Function{Project: here, Name: "price", Version: version, Source: source, Publisher: "ada"}
}

func TestVersionsNeverChange(t *testing.T) {
	t.Parallel()
	ctx, functions, _ := newServices(t)
	p, err := functions.Publish(ctx, price("1.0.0", "set: {amount: 1}"))
	require.NoError(t, err)
	require.True(t, p.Created)
	p, err = functions.Publish(ctx, price("1.0.0", "set: {amount: 1}"))
	require.NoError(t, err)
	require.False(t, p.Created)
	_, err = functions.Publish(ctx, price("1.0.0", "set: {amount: 2}"))
	requireError(t, err, apperror.VersionTaken, `version "1.0.0" of function "price" is published with another content`)
	_, err = functions.Publish(ctx, price("1.1.0", "set: {amount: 2}"))
	require.NoError(t, err)

	list, err := functions.List(ctx, function.Filter{Project: here, Text: "ric", Limit: 10})
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, "1.1.0", list[0].Version, "newest first")
	rest, err := functions.List(ctx, function.Filter{Project: here, After: new(list[0].Position()), Limit: 10})
	require.NoError(t, err)
	require.Equal(t, list[1:], rest)
	newest, err := functions.Get(ctx, here, "price", "")
	require.NoError(t, err)
	require.Equal(t, "set: {amount: 2}", newest.Source)
}

func TestWrongFunctionsAreRefused(t *testing.T) {
	t.Parallel()
	ctx, functions, _ := newServices(t)
	for text, f := range map[string]function.Function{
		`the name "Price" of a function is not allowed`: {Project: here, Name: "Price", Version: "1.0.0"},
		`is not a semantic version such as 1.0.0`:       {Project: here, Name: "price", Version: "1"},
		`2:1: unknown_key: the task "price" has no key "sett"`: {Project: here, Name: "price", Version: "1.0.0",
			Source: "set: {x: 1}\nsett: 1\n"},
		`cannot refer to the file "x.yaml"`: {Project: here, Name: "price", Version: "1.0.0", Source: "call: x.yaml"},
		`the project "none"`:                {Project: "none", Name: "price", Version: "1.0.0", Source: "set: {x: 1}"},
	} {
		_, err := functions.Publish(ctx, f)
		if f.Project == "none" {
			require.True(t, apperror.Is(err, apperror.ProjectNotFound), "%v", err)
			continue
		}
		require.ErrorContains(t, err, text)
	}
	_, err := functions.Get(ctx, here, "price", "1.0.0")
	requireError(t, err, apperror.FunctionNotFound, `has no function "price:1.0.0"`)
}

// A workflow keeps the function that it was published with.
func TestWorkflowsCallFunctionsOfTheirProject(t *testing.T) {
	t.Parallel()
	ctx, functions, workflows := newServices(t)
	calling := workflow.Submission{Source: "document: {dsl: 1.0.3, namespace: shop, name: order, version: 1.0.0}\n" +
		"do: [{a: {call: 'price:1.0.0@default'}}]\n"}
	_, err := workflows.Publish(ctx, here, calling, "ada")
	requireError(t, err, apperror.InvalidDocument,
		`the resource "price:1.0.0@default" cannot be read: the catalog of project "default" has no function "price:1.0.0"`)
	_, err = functions.Publish(ctx, price("1.0.0", "set: {amount: 1}"))
	require.NoError(t, err)
	_, err = workflows.Publish(ctx, here, calling, "ada")
	require.NoError(t, err)
	shown, err := functions.Get(ctx, here, "price", "1.0.0")
	require.NoError(t, err)
	require.Equal(t, []function.User{{Workflow: "shop/order", Version: "1.0.0", Latest: true}}, shown.Users)

	require.NoError(t, functions.Delete(ctx, here, "price", ""))
	requireError(t, functions.Delete(ctx, here, "price", ""), apperror.FunctionNotFound, "price")
	g, err := workflows.Graph(ctx, here, "order", "1.0.0", false)
	require.NoError(t, err)
	require.Len(t, g.Graph.Nodes, 4)
}

func TestSchemasOfFunctionsAreShown(t *testing.T) {
	t.Parallel()
	ctx, functions, _ := newServices(t)
	_, err := functions.Publish(ctx, price("1.0.0", "input: {schema: {document: {type: object, required: [sku]}}}\n"+
		"set: {amount: 1}\noutput:\n  schema: {format: json, document: {properties: {b: {}, a: {}}}}\n"))
	require.NoError(t, err)
	_, err = functions.Publish(ctx, price("1.1.0", "set: {amount: 1}"))
	require.NoError(t, err)
	shown, err := functions.Get(ctx, here, "price", "1.0.0")
	require.NoError(t, err)
	require.Equal(t, `{"type":"object","required":["sku"]}`, string(shown.InputSchema))
	require.Equal(t, `{"properties":{"b":{},"a":{}}}`, string(shown.OutputSchema), "in the order of the source")
	shown, err = functions.Get(ctx, here, "price", "1.1.0")
	require.NoError(t, err)
	require.Nil(t, shown.InputSchema)
	require.Nil(t, shown.OutputSchema)
}

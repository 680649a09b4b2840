package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

// origin has web resources and records what is read.
type origin struct {
	mu       sync.Mutex
	contents map[string]string
	loads    []string
}

func (o *origin) Load(_ context.Context, project string, r dsl.Reference) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.loads = append(o.loads, project+" "+r.URI)
	content, ok := o.contents[r.URI]
	if !ok {
		return nil, errors.New("the origin answered 404 Not Found")
	}
	return []byte(content), nil
}

// read returns what was read since the last call.
func (o *origin) read() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	loads := o.loads
	o.loads = nil
	return loads
}

const priceFunction = "https://example.com/price.yaml"

func referring(version, calls string) string {
	return "document: {dsl: 1.0.3, namespace: shop, name: order, version: " + version + "}\n" + calls
}

func submission(version string) workflow.Submission {
	return workflow.Submission{
		Source: referring(version, "input: {schema: {resource: {endpoint: order.yaml}}}\ndo: [{a: {call: '"+priceFunction+"'}}]\n"),
		Files:  map[string]string{"order.yaml": "type: object"},
	}
}

func withOrigin(t *testing.T) (*bench, *origin) {
	b := newBench(t)
	o := &origin{contents: map[string]string{
		priceFunction:                   "call: ./rate.yaml",
		"https://example.com/rate.yaml": "set: {rate: 2}",
	}}
	b.SetLoader(o)
	return b, o
}

func TestPublishPinsResources(t *testing.T) {
	t.Parallel()
	b, o := withOrigin(t)
	p, err := b.Publish(b.ctx, here, submission("1.0.0"), "ada")
	require.NoError(t, err)
	require.Empty(t, p.Violations)
	require.Equal(t, []string{here + " " + priceFunction, here + " https://example.com/rate.yaml"}, o.read())
	v, err := b.GetVersion(b.ctx, here, "order", "1.0.0")
	require.NoError(t, err)
	require.Equal(t, p.Version.Resources, v.Resources)
	var uris, hashes []string
	for _, r := range v.Resources {
		uris, hashes = append(uris, r.URI), append(hashes, r.Hash)
		require.Positive(t, r.Size)
		require.Equal(t, v.PublishedAt, r.LoadedAt)
		require.Nil(t, r.Content)
	}
	require.Equal(t, []string{priceFunction, "https://example.com/rate.yaml", "order.yaml"}, uris)
	contents, err := b.store.Resources(b.ctx, hashes)
	require.NoError(t, err)
	require.Equal(t, "type: object", string(contents[hashes[2]]))

	// Neither the graph nor the schema need the origin.
	o.contents = nil
	g, err := b.Graph(b.ctx, here, "order", "", false)
	require.NoError(t, err)
	require.Len(t, g.Graph.Nodes, 5)
	schema, err := b.InputSchema(b.ctx, v)
	require.NoError(t, err)
	require.JSONEq(t, `{"type": "object"}`, string(schema))
	require.Empty(t, o.read())
	_, err = b.Publish(b.ctx, here, submission("1.1.0"), "ada")
	requireError(t, err, apperror.Invalid, apperror.InvalidDocument,
		`the resource "https://example.com/price.yaml" cannot be read: the origin answered 404 Not Found`)
}

// The same document with another content of a resource is another content.
func TestChangedResourcesNeedANewVersion(t *testing.T) {
	t.Parallel()
	b, o := withOrigin(t)
	first, err := b.Publish(b.ctx, here, submission("1.0.0"), "ada")
	require.NoError(t, err)
	again, err := b.Publish(b.ctx, here, submission("1.0.0"), "ada")
	require.NoError(t, err)
	require.False(t, again.Created)
	require.Equal(t, first.Version.Hash, again.Version.Hash)

	o.contents["https://example.com/rate.yaml"] = "set: {rate: 3}"
	_, err = b.Publish(b.ctx, here, submission("1.0.0"), "ada")
	requireError(t, err, apperror.Exists, apperror.VersionTaken,
		`is published with another content of https://example.com/rate.yaml: give the new one a new version`)
	other, err := b.Publish(b.ctx, here, submission("1.1.0"), "ada")
	require.NoError(t, err)
	require.True(t, other.Created)
	require.NotEqual(t, first.Version.Hash, other.Version.Hash)
	changed := submission("1.0.0")
	changed.Source = strings.Replace(changed.Source, "{a:", "{b:", 1)
	_, err = b.Publish(b.ctx, here, changed, "ada")
	requireError(t, err, apperror.Exists, apperror.VersionTaken, "is published with another document")
}

// Callers that may only read make the server use no credentials, and repeated validations read nothing again.
func TestValidationReadsWithoutCredentials(t *testing.T) {
	t.Parallel()
	b, o := withOrigin(t)
	c, err := b.Validate(b.ctx, here, submission("1.0.0"))
	require.NoError(t, err)
	require.NotNil(t, c.Document)
	require.Len(t, o.read(), 2)
	_, err = b.Validate(b.ctx, here, submission("1.0.1"))
	require.NoError(t, err)
	require.Empty(t, o.read())

	secret := workflow.Submission{Source: referring("1.0.0", `
use: {secrets: [token]}
input:
  schema:
    resource: {endpoint: {uri: 'https://example.com/s.json', authentication: {bearer: {token: '${ $secrets.token }'}}}}
do: [{a: {set: {x: 1}}}]
`)}
	c, err = b.Validate(b.ctx, here, secret)
	require.NoError(t, err)
	require.NotNil(t, c.Document)
	require.True(t, c.Document.Partial)
	require.Equal(t, dsl.CodeResource, c.Violations[0].Code)
	require.Empty(t, o.read())
	o.contents["https://example.com/s.json"] = "{}"
	p, err := b.Publish(b.ctx, here, secret, "ada")
	require.NoError(t, err)
	require.Len(t, p.Version.Resources, 1)
	require.Len(t, o.read(), 1)
}

func TestResourcesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	b, o := withOrigin(t)
	for name, content := range map[string]string{"binary": "\xff\xfe", "nul": "a\x00b"} {
		o.contents[priceFunction] = content
		_, err := b.Publish(b.ctx, here, submission("1.0.0"), "ada")
		requireError(t, err, apperror.Invalid, apperror.InvalidDocument, "it is not a text in UTF-8")
		require.Error(t, err, name)
	}
	o.contents[priceFunction] = "\ufeffset: {x: 1}"
	sub := submission("1.0.0")
	sub.Files = nil
	_, err := b.Publish(b.ctx, here, sub, "ada")
	requireError(t, err, apperror.Invalid, apperror.InvalidDocument,
		`the resource "order.yaml" cannot be read: the file was not sent with the document`)
	sub.Files = map[string]string{"order.yaml": strings.Repeat("x", dsl.MaxResourcesBytes+1)}
	_, err = b.Publish(b.ctx, here, sub, "ada")
	requireError(t, err, apperror.Exhausted, apperror.DefinitionTooLarge, "refer to fewer or smaller files")

	without := newBench(t)
	_, err = without.Publish(without.ctx, here, submission("1.0.0"), "ada")
	requireError(t, err, apperror.Invalid, apperror.InvalidDocument, "this server reads no web resources")
}

func TestAuditNamesResources(t *testing.T) {
	t.Parallel()
	b, _ := withOrigin(t)
	kept := &publishing{}
	service := workflow.NewService(kept, kept, dsl.DefaultLimits(), b.tick)
	_, err := service.Publish(b.ctx, here, workflow.Submission{
		Source: referring("1.0.0", "do: [{a: {call: f.yaml}}]\n"), Files: map[string]string{"f.yaml": "set: {x: 1}"},
	}, "ada")
	require.NoError(t, err)
	var detail struct{ Resources []dsl.Pin }
	require.NoError(t, json.Unmarshal(kept.entry.Detail, &detail))
	require.Equal(t, []dsl.Pin{{URI: "f.yaml", Hash: dsl.ContentHash([]byte("set: {x: 1}"))}}, detail.Resources)
}

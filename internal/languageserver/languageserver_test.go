package languageserver_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"github.com/signalbox-dev/signalbox/internal/languageserver"
)

const order = `document: {dsl: '1.0.3', namespace: shop, name: order, version: '1.0.0'}
use:
  errors:
    broken: {type: 'https://shop.example/broken', status: 500}
do:
  - '𝄞': {if: .y, call: lib/f.yaml, then: done}
  - pick:
      switch:
        - one: {when: .x, then: done}
  - done: {raise: {error: broken}}
`

// client receives what the server publishes.
type client struct {
	protocol.UnimplementedClient

	published chan *protocol.PublishDiagnosticsParams
}

// PublishDiagnostics implements protocol.Client.
func (c *client) PublishDiagnostics(_ context.Context, p *protocol.PublishDiagnosticsParams) error {
	c.published <- p
	return nil
}

// editor asks the server.
type editor struct {
	protocol.Server

	client client
	folder string
}

func start(t *testing.T) *editor {
	t.Helper()
	e := &editor{folder: t.TempDir(), client: client{published: make(chan *protocol.PublishDiagnosticsParams, 100)}}
	near, far := net.Pipe()
	ctx := context.WithoutCancel(t.Context()) // the connection is used after the test
	served := make(chan error, 1)
	go func() { served <- languageserver.Serve(ctx, far, far, "1.2.3") }()
	conn := jsonrpc2.NewConn(jsonrpc2.NewStream(near), jsonrpc2.WithCodec(languageserver.Codec{}))
	conn.Go(ctx, protocol.ClientHandler(&e.client, jsonrpc2.MethodNotFoundHandler)) // in the order of the messages
	server := protocol.ServerDispatcher(conn)
	e.Server = server
	result, err := server.Initialize(t.Context(), &protocol.InitializeParams{})
	require.NoError(t, err)
	require.Equal(t, "signalbox", result.ServerInfo.Name)
	require.NoError(t, server.Initialized(t.Context(), &protocol.InitializedParams{}))
	t.Cleanup(func() {
		require.NoError(t, server.Shutdown(ctx))
		require.NoError(t, server.Exit(ctx))
		require.NoError(t, <-served)
		require.NoError(t, far.Close())
		require.NoError(t, conn.Close())
	})
	return e
}

func (e *editor) uri(name string) uri.URI { return uri.File(filepath.Join(e.folder, name)) }

func (e *editor) doc(name string) protocol.TextDocumentIdentifier {
	return protocol.TextDocumentIdentifier{URI: e.uri(name)}
}

// diagnostics opens a text and returns the messages that the server publishes for it.
func (e *editor) diagnostics(t *testing.T, name, text string) []string {
	t.Helper()
	require.NoError(t, e.DidOpen(t.Context(), &protocol.DidOpenTextDocumentParams{TextDocument: protocol.TextDocumentItem{
		URI: e.uri(name), LanguageID: "yaml", Version: 1, Text: text}}))
	return e.next(t, name)
}

func (e *editor) next(t *testing.T, name string) []string {
	t.Helper()
	for {
		select {
		case p := <-e.client.published:
			if p.URI != e.uri(name) {
				continue
			}
			messages := []string{}
			for _, d := range p.Diagnostics {
				text, _ := d.Message.(protocol.String)
				messages = append(messages, string(text))
			}
			return messages
		case <-t.Context().Done():
			t.Fatal("no diagnostics were published")
		}
	}
}

// position returns the position after a part of a text, in units of UTF-16.
func position(t *testing.T, text, part string) protocol.Position {
	t.Helper()
	i := strings.Index(text, part)
	require.GreaterOrEqual(t, i, 0, part)
	before := text[:i+len(part)]
	line := before[strings.LastIndexByte(before, '\n')+1:]
	wide := strings.Count(line, "𝄞")
	return protocol.Position{Line: uint32(strings.Count(before, "\n")), Character: uint32(len([]rune(line)) + wide)}
}

func (e *editor) at(t *testing.T, name, text, part string) protocol.TextDocumentPositionParams {
	t.Helper()
	return protocol.TextDocumentPositionParams{TextDocument: e.doc(name), Position: position(t, text, part)}
}

func TestDiagnosticsFollowTheText(t *testing.T) {
	t.Parallel()
	e := start(t)
	require.NoError(t, os.MkdirAll(filepath.Join(e.folder, "lib"), 0o700))
	found := e.diagnostics(t, "order.yaml", order)
	require.Len(t, found, 1)
	require.Contains(t, found[0], "lib/f.yaml")
	require.NoError(t, os.WriteFile(filepath.Join(e.folder, "lib", "f.yaml"), []byte("set: {x: 1}"), 0o600))
	change := func(name, text string) {
		require.NoError(t, e.DidChange(t.Context(), &protocol.DidChangeTextDocumentParams{
			TextDocument: protocol.VersionedTextDocumentIdentifier{TextDocumentIdentifier: e.doc(name), Version: 2},
			ContentChanges: []protocol.TextDocumentContentChangeEvent{
				&protocol.TextDocumentContentChangeWholeDocument{Text: text}},
		}))
	}
	change("order.yaml", order)
	require.Empty(t, e.next(t, "order.yaml"))
	change("order.yaml", "do: [")
	require.NotEmpty(t, e.next(t, "order.yaml"))
	change("order.yaml", order)
	require.Empty(t, e.next(t, "order.yaml"))

	const tests = "cases: [{name: one, expect: {ran: [done]}}]\n"
	require.Empty(t, e.diagnostics(t, "order.test.yaml", tests))
	change("order.yaml", strings.ReplaceAll(order, "done", "finished"))
	found = e.next(t, "order.test.yaml")
	require.Len(t, found, 1)
	require.Contains(t, found[0], `no task "done"`, "the text in the editor counts")

	require.Empty(t, e.diagnostics(t, "compose.yaml", "services: {web: {image: x}}\n"), "it is no workflow")
	require.NoError(t, e.DidClose(t.Context(), &protocol.DidCloseTextDocumentParams{TextDocument: e.doc("order.yaml")}))
	require.Empty(t, e.next(t, "order.yaml"))
}

func TestQuestionsAreAnswered(t *testing.T) {
	t.Parallel()
	e := start(t)
	e.diagnostics(t, "order.yaml", order)

	completion, err := e.Completion(t.Context(), &protocol.CompletionParams{
		TextDocumentPositionParams: e.at(t, "order.yaml", order, "lib/f.yaml, ")})
	require.NoError(t, err)
	items, ok := completion.(protocol.CompletionItemSlice)
	require.True(t, ok)
	var labels []string
	for _, item := range items {
		labels = append(labels, item.Label)
	}
	require.Contains(t, labels, "with")
	require.NotContains(t, labels, "call")

	hover, err := e.Hover(t.Context(), &protocol.HoverParams{TextDocumentPositionParams: e.at(t, "order.yaml", order, "swit")})
	require.NoError(t, err)
	require.Contains(t, hover.Contents.(*protocol.MarkupContent).Value, "condition holds")

	definition, err := e.Definition(t.Context(), &protocol.DefinitionParams{
		TextDocumentPositionParams: e.at(t, "order.yaml", order, "then: do")})
	require.NoError(t, err)
	locations := definition.(protocol.LocationSlice)
	require.Len(t, locations, 1)
	require.Equal(t, position(t, order, "\n  - done"), locations[0].Range.End)
	definition, err = e.Definition(t.Context(), &protocol.DefinitionParams{
		TextDocumentPositionParams: e.at(t, "order.yaml", order, "call: lib")})
	require.NoError(t, err)
	require.Equal(t, e.uri("lib/f.yaml"), definition.(protocol.LocationSlice)[0].URI)

	references, err := e.References(t.Context(), &protocol.ReferenceParams{
		TextDocumentPositionParams: e.at(t, "order.yaml", order, "broken")})
	require.NoError(t, err)
	require.Len(t, references, 2)

	symbols, err := e.DocumentSymbol(t.Context(), &protocol.DocumentSymbolParams{TextDocument: e.doc("order.yaml")})
	require.NoError(t, err)
	require.Len(t, symbols.(protocol.DocumentSymbolSlice), 4)
	folds, err := e.FoldingRanges(t.Context(), &protocol.FoldingRangeParams{TextDocument: e.doc("order.yaml")})
	require.NoError(t, err)
	require.NotEmpty(t, folds)
}

func TestEditsAreReturned(t *testing.T) {
	t.Parallel()
	e := start(t)
	e.diagnostics(t, "order.yaml", order)
	where := e.at(t, "order.yaml", order, "then: do")
	prepared, err := e.PrepareRename(t.Context(), &protocol.PrepareRenameParams{TextDocumentPositionParams: where})
	require.NoError(t, err)
	require.Equal(t, "done", prepared.(*protocol.PrepareRenamePlaceholder).Placeholder)
	edit, err := e.Rename(t.Context(), &protocol.RenameParams{TextDocumentPositionParams: where, NewName: "finished"})
	require.NoError(t, err)
	require.Len(t, edit.Changes[e.uri("order.yaml")], 3)
	end := position(t, order, "lib/f.yaml, then: done")
	require.Contains(t, edit.Changes[e.uri("order.yaml")], protocol.TextEdit{NewText: "finished", Range: protocol.Range{
		Start: protocol.Position{Line: end.Line, Character: end.Character - 4}, End: end}}, "wide characters count twice")
	_, err = e.Rename(t.Context(), &protocol.RenameParams{TextDocumentPositionParams: where, NewName: "pick"})
	require.ErrorContains(t, err, "already used")

	wrong := strings.Replace(order, "error: broken", "error:   brokn", 1)
	e.diagnostics(t, "wrong.yaml", wrong)
	at := position(t, wrong, "brokn")
	actions, err := e.CodeAction(t.Context(), &protocol.CodeActionParams{TextDocument: e.doc("wrong.yaml"),
		Range: protocol.Range{Start: at, End: at}})
	require.NoError(t, err)
	require.Len(t, actions, 1)
	require.Equal(t, `Replace by "broken"`, actions[0].(*protocol.CodeAction).Title)

	edits, err := e.Formatting(t.Context(), &protocol.DocumentFormattingParams{TextDocument: e.doc("wrong.yaml")})
	require.NoError(t, err)
	require.Len(t, edits, 1)
	require.Contains(t, edits[0].NewText, "error: brokn")
}

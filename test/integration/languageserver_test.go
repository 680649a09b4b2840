package integration_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// editor is the client of a language server, which is a process of its own.
type editor struct {
	protocol.UnimplementedClient

	published chan *protocol.PublishDiagnosticsParams
}

// PublishDiagnostics implements protocol.Client.
func (e *editor) PublishDiagnostics(_ context.Context, p *protocol.PublishDiagnosticsParams) error {
	e.published <- p
	return nil
}

// pipes are the standard streams of a process.
type pipes struct {
	io.ReadCloser
	io.WriteCloser
}

// Close implements io.Closer.
func (p pipes) Close() error { return p.WriteCloser.Close() }

// An editor starts the program, sees an error while a workflow is typed, applies the fix, and ends the program.
func TestLanguageServerServesAnEditor(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), soon)
	defer cancel()
	cmd := exec.CommandContext(ctx, platform.Binary(t), "language-server")
	cmd.Env = platform.Environment(t)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	client := &editor{published: make(chan *protocol.PublishDiagnosticsParams, 10)}
	_, conn, server := protocol.NewClient(ctx, client, jsonrpc2.NewStream(pipes{out, in}))
	result, err := server.Initialize(ctx, &protocol.InitializeParams{})
	require.NoError(t, err)
	require.Equal(t, "signalbox", result.ServerInfo.Name)
	require.NoError(t, server.Initialized(ctx, &protocol.InitializedParams{}))

	const wrong = "document: {dsl: '1.0.3', namespace: shop, name: order, version: '1.0.0'}\n" +
		"do:\n  - greet:\n      sett: {greeting: '${ \"Hello, \" + .name }'}\n"
	file := uri.File(filepath.Join(t.TempDir(), "order.yaml"))
	identifier := protocol.TextDocumentIdentifier{URI: file}
	require.NoError(t, server.DidOpen(ctx, &protocol.DidOpenTextDocumentParams{
		TextDocument: protocol.TextDocumentItem{URI: file, LanguageID: "yaml", Version: 1, Text: wrong}}))
	published := <-client.published
	require.Len(t, published.Diagnostics, 1)
	at := protocol.Range{Start: protocol.Position{Line: 3, Character: 6}, End: protocol.Position{Line: 3, Character: 10}}
	actions, err := server.CodeAction(ctx, &protocol.CodeActionParams{TextDocument: identifier,
		Range: protocol.Range{Start: protocol.Position{Line: 2}, End: at.End}})
	require.NoError(t, err)
	require.Len(t, actions, 1)
	action, ok := actions[0].(*protocol.CodeAction)
	require.True(t, ok)
	require.Equal(t, []protocol.TextEdit{{Range: at, NewText: "set"}}, action.Edit.Changes[file])
	require.NoError(t, server.DidChange(ctx, &protocol.DidChangeTextDocumentParams{
		TextDocument: protocol.VersionedTextDocumentIdentifier{TextDocumentIdentifier: identifier, Version: 2},
		ContentChanges: []protocol.TextDocumentContentChangeEvent{
			&protocol.TextDocumentContentChangeWholeDocument{Text: strings.Replace(wrong, "sett", "set", 1)}},
	}))
	require.Empty(t, (<-client.published).Diagnostics)
	hover, err := server.Hover(ctx, &protocol.HoverParams{TextDocumentPositionParams: protocol.TextDocumentPositionParams{
		TextDocument: identifier, Position: at.Start}})
	require.NoError(t, err)
	require.NotNil(t, hover)

	require.NoError(t, server.Shutdown(ctx))
	require.NoError(t, server.Exit(ctx))
	require.NoError(t, cmd.Wait())
	_ = conn.Close() // the process has ended the streams
}

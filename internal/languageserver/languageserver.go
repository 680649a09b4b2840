// Package languageserver serves the language of workflows to editors by the Language Server Protocol: it translates
// between the protocol and package dsl/languageservice, keeps the texts that are open in the editor, and reads files
// beside them.
//
//	err := languageserver.Serve(ctx, os.Stdin, os.Stdout, version)
//
// Files whose names end with .test.yaml (or .yml, .json) are tests. Other texts without a key of a workflow are left
// alone, so that an editor may attach the server to all YAML files.
package languageserver

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/languageservice"
)

// Serve answers one editor until it exits, the input ends or the context is done.
func Serve(ctx context.Context, in io.Reader, out io.Writer, version string) error {
	s := &server{service: languageservice.New(), version: version, open: map[uri.URI]*document{},
		exit: make(chan struct{})}
	conn := jsonrpc2.NewConn(jsonrpc2.NewStream(stream{in, out}), jsonrpc2.WithCodec(Codec{}))
	s.client = protocol.ClientDispatcher(conn)
	// protocol.NewServer would answer requests side by side, so that changes of a text could be applied in another order.
	conn.Go(ctx, protocol.ServerHandler(s, jsonrpc2.MethodNotFoundHandler))
	select {
	case <-conn.Done():
		return conn.Err()
	case <-s.exit:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Codec encodes the messages of the protocol.
type Codec struct{}

// Marshal implements jsonrpc2.Codec.
func (Codec) Marshal(v any) ([]byte, error) { return protocol.Marshal(v) }

// Unmarshal implements jsonrpc2.Codec.
func (Codec) Unmarshal(data []byte, v any) error { return protocol.Unmarshal(data, v) }

// stream is the pair of a program's standard streams, which it does not close.
type stream struct {
	io.Reader
	io.Writer
}

// Close implements io.Closer.
func (stream) Close() error { return nil }

// server is the server of one editor. The protocol calls its methods one after another, in the order of the messages.
type server struct {
	protocol.UnimplementedServer

	service *languageservice.Service
	version string
	client  protocol.Client
	open    map[uri.URI]*document
	exit    chan struct{}
}

// document is a text that is open in the editor.
type document struct {
	uri     uri.URI
	version int32
	*text
}

func (d *document) name() string { return filepath.Base(d.uri.FsPath()) }

// isTests reports whether the document is a file of tests.
func (d *document) isTests() bool {
	name := d.name()
	return strings.HasSuffix(strings.TrimSuffix(name, filepath.Ext(name)), ".test")
}

// Initialize implements protocol.Server.
func (s *server) Initialize(context.Context, *protocol.InitializeParams) (*protocol.InitializeResult, error) {
	yes := true
	return &protocol.InitializeResult{
		ServerInfo: protocol.ServerInfo{Name: "signalbox", Version: protocol.NewOptional(s.version)},
		Capabilities: protocol.ServerCapabilities{
			TextDocumentSync:           protocol.TextDocumentSyncKindFull,
			CompletionProvider:         &protocol.CompletionOptions{TriggerCharacters: []string{"$", ".", " ", "@"}},
			HoverProvider:              protocol.Boolean(true),
			DefinitionProvider:         protocol.Boolean(true),
			ReferencesProvider:         protocol.Boolean(true),
			DocumentSymbolProvider:     protocol.Boolean(true),
			DocumentFormattingProvider: protocol.Boolean(true),
			FoldingRangeProvider:       protocol.Boolean(true),
			CodeActionProvider: &protocol.CodeActionOptions{
				CodeActionKinds: []protocol.CodeActionKind{protocol.CodeActionKindQuickFix}},
			RenameProvider: &protocol.RenameOptions{PrepareProvider: &yes},
		},
	}, nil
}

// Shutdown implements protocol.Server.
func (s *server) Shutdown(context.Context) error { return nil }

// Exit implements protocol.Server.
func (s *server) Exit(context.Context) error {
	select {
	case <-s.exit: // it was called before
	default:
		close(s.exit)
	}
	return nil
}

// DidOpen implements protocol.Server.
func (s *server) DidOpen(ctx context.Context, p *protocol.DidOpenTextDocumentParams) error {
	return s.set(ctx, p.TextDocument.URI, p.TextDocument.Version, p.TextDocument.Text)
}

// DidChange implements protocol.Server.
func (s *server) DidChange(ctx context.Context, p *protocol.DidChangeTextDocumentParams) error {
	for _, change := range p.ContentChanges {
		if whole, ok := change.(*protocol.TextDocumentContentChangeWholeDocument); ok {
			if err := s.set(ctx, p.TextDocument.URI, p.TextDocument.Version, whole.Text); err != nil {
				return err
			}
		}
	}
	return nil
}

// DidClose implements protocol.Server.
func (s *server) DidClose(ctx context.Context, p *protocol.DidCloseTextDocumentParams) error {
	delete(s.open, p.TextDocument.URI)
	return s.client.PublishDiagnostics(ctx, &protocol.PublishDiagnosticsParams{URI: p.TextDocument.URI,
		Diagnostics: []protocol.Diagnostic{}})
}

// set replaces a text, and publishes its diagnostics and those of the tests in its folder.
func (s *server) set(ctx context.Context, at uri.URI, version int32, source string) error {
	changed := &document{uri: at, version: version, text: newText(s.service, strings.Clone(source))}
	s.open[at] = changed
	folder := filepath.Dir(at.FsPath())
	for _, d := range s.open {
		if d != changed && (!d.isTests() || filepath.Dir(d.uri.FsPath()) != folder) {
			continue
		}
		err := s.client.PublishDiagnostics(ctx, &protocol.PublishDiagnosticsParams{
			URI: d.uri, Version: protocol.NewOptional(d.version), Diagnostics: d.protocolDiagnostics(s.diagnose(d)),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *server) diagnose(d *document) []languageservice.Diagnostic {
	switch {
	case d.isTests():
		return d.DiagnoseTests(d.name(), s.files(d))
	case d.IsWorkflow():
		return d.Diagnose(s.files(d))
	}
	return nil
}

// files reads files in and below the folder of a document, as they are in the editor if they are open there.
func (s *server) files(d *document) languageservice.Files {
	folder := filepath.Dir(d.uri.FsPath())
	return func(path string) ([]byte, error) {
		name := filepath.Join(folder, filepath.FromSlash(path))
		for _, other := range s.open {
			if other.uri.FsPath() == name {
				return []byte(other.source), nil
			}
		}
		root, err := os.OpenRoot(folder)
		if err != nil {
			return nil, err
		}
		defer func() { _ = root.Close() }() // it was only read
		file, err := root.Open(filepath.FromSlash(path))
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }() // it was only read
		if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%q is not a file", path)
		}
		return io.ReadAll(io.LimitReader(file, dsl.MaxResourceBytes))
	}
}

// at returns the document that a request concerns; nil if it is not open, or no workflow.
func (s *server) at(identifier protocol.TextDocumentIdentifier) *document {
	if d := s.open[identifier.URI]; d != nil && (d.isTests() || d.IsWorkflow()) {
		return d
	}
	return nil
}

// workflow returns the workflow that a request concerns; nil if it is none.
func (s *server) workflow(identifier protocol.TextDocumentIdentifier) *document {
	if d := s.at(identifier); d != nil && !d.isTests() {
		return d
	}
	return nil
}

// Completion implements protocol.Server.
func (s *server) Completion(_ context.Context, p *protocol.CompletionParams) (protocol.CompletionResult, error) {
	items := protocol.CompletionItemSlice{}
	d := s.workflow(p.TextDocument)
	if d == nil {
		return items, nil
	}
	for i, c := range d.Complete(d.pos(p.Position)) {
		edit := d.edit(c.Edit)
		item := protocol.CompletionItem{
			Label: c.Label, Kind: completionKind(c.Kind), TextEdit: &edit,
			SortText: protocol.NewOptional(fmt.Sprintf("%04d", i)),
		}
		if c.Detail != "" {
			item.Detail = protocol.NewOptional(c.Detail)
		}
		if c.Doc != "" {
			item.Documentation = &protocol.MarkupContent{Kind: protocol.MarkupKindMarkdown, Value: c.Doc}
		}
		items = append(items, item)
	}
	return items, nil
}

func completionKind(kind languageservice.CompletionKind) protocol.CompletionItemKind {
	switch kind {
	case languageservice.CompleteKey:
		return protocol.CompletionItemKindProperty
	case languageservice.CompleteReference:
		return protocol.CompletionItemKindReference
	case languageservice.CompleteVariable:
		return protocol.CompletionItemKindVariable
	case languageservice.CompleteFunction:
		return protocol.CompletionItemKindFunction
	case languageservice.CompleteValue:
	}
	return protocol.CompletionItemKindValue
}

// Hover implements protocol.Server.
func (s *server) Hover(_ context.Context, p *protocol.HoverParams) (*protocol.Hover, error) {
	d := s.workflow(p.TextDocument)
	if d == nil {
		return nil, nil //nolint:nilnil // the protocol's null: there is nothing to show
	}
	hover, ok := d.Hover(d.pos(p.Position))
	if !ok {
		return nil, nil //nolint:nilnil // as above
	}
	at := d.rangeOf(hover.Range)
	return &protocol.Hover{Range: &at,
		Contents: &protocol.MarkupContent{Kind: protocol.MarkupKindMarkdown, Value: hover.Doc}}, nil
}

// Definition implements protocol.Server.
func (s *server) Definition(_ context.Context, p *protocol.DefinitionParams) (protocol.DefinitionResult, error) {
	d := s.workflow(p.TextDocument)
	if d == nil {
		return protocol.LocationSlice{}, nil
	}
	location, ok := d.Definition(d.pos(p.Position))
	switch {
	case !ok:
		return protocol.LocationSlice{}, nil
	case location.File != "":
		path := filepath.Join(filepath.Dir(d.uri.FsPath()), filepath.FromSlash(location.File))
		return protocol.LocationSlice{{URI: uri.File(path)}}, nil
	}
	return protocol.LocationSlice{{URI: d.uri, Range: d.rangeOf(location.Range)}}, nil
}

// References implements protocol.Server.
func (s *server) References(_ context.Context, p *protocol.ReferenceParams) ([]protocol.Location, error) {
	locations := []protocol.Location{}
	if d := s.workflow(p.TextDocument); d != nil {
		for _, r := range d.References(d.pos(p.Position)) {
			locations = append(locations, protocol.Location{URI: d.uri, Range: d.rangeOf(r)})
		}
	}
	return locations, nil
}

// PrepareRename implements protocol.Server.
func (s *server) PrepareRename(_ context.Context, p *protocol.PrepareRenameParams) (protocol.PrepareRenameResult, error) {
	d := s.workflow(p.TextDocument)
	if d == nil {
		return nil, nil //nolint:nilnil // the protocol's null: nothing can be renamed
	}
	at, name, ok := d.Renameable(d.pos(p.Position))
	if !ok {
		return nil, nil //nolint:nilnil // as above
	}
	return &protocol.PrepareRenamePlaceholder{Range: d.rangeOf(at), Placeholder: name}, nil
}

// Rename implements protocol.Server.
func (s *server) Rename(_ context.Context, p *protocol.RenameParams) (*protocol.WorkspaceEdit, error) {
	d := s.workflow(p.TextDocument)
	if d == nil {
		return nil, nil //nolint:nilnil // the protocol's null: nothing can be renamed
	}
	edits, err := d.Rename(d.pos(p.Position), p.NewName)
	if err != nil {
		return nil, jsonrpc2.NewError(jsonrpc2.Code(protocol.LSPErrorCodesRequestFailed), err.Error())
	}
	return d.workspaceEdit(edits), nil
}

// DocumentSymbol implements protocol.Server.
func (s *server) DocumentSymbol(_ context.Context, p *protocol.DocumentSymbolParams) (protocol.DocumentSymbolResult,
	error) {
	d := s.workflow(p.TextDocument)
	if d == nil {
		return protocol.DocumentSymbolSlice{}, nil
	}
	return protocol.DocumentSymbolSlice(d.protocolSymbols(d.Symbols())), nil
}

// FoldingRanges implements protocol.Server.
func (s *server) FoldingRanges(_ context.Context, p *protocol.FoldingRangeParams) ([]protocol.FoldingRange, error) {
	folds := []protocol.FoldingRange{}
	if d := s.at(p.TextDocument); d != nil {
		for _, r := range d.Folds() {
			at := d.rangeOf(r)
			folds = append(folds, protocol.FoldingRange{StartLine: at.Start.Line, EndLine: at.End.Line})
		}
	}
	return folds, nil
}

// Formatting implements protocol.Server. A text that cannot be laid out stays as it is: its diagnostics show why.
func (s *server) Formatting(_ context.Context, p *protocol.DocumentFormattingParams) ([]protocol.TextEdit, error) {
	d := s.at(p.TextDocument)
	if d == nil {
		return []protocol.TextEdit{}, nil
	}
	edit, changed, err := d.Format()
	if err != nil || !changed {
		return []protocol.TextEdit{}, nil //nolint:nilerr // see above
	}
	return []protocol.TextEdit{d.edit(edit)}, nil
}

// CodeAction implements protocol.Server.
func (s *server) CodeAction(_ context.Context, p *protocol.CodeActionParams) ([]protocol.CommandOrCodeAction, error) {
	actions := []protocol.CommandOrCodeAction{}
	d := s.at(p.TextDocument)
	if d == nil || len(p.Context.Only) > 0 && !slices.Contains(p.Context.Only, protocol.CodeActionKindQuickFix) {
		return actions, nil
	}
	kind, preferred := protocol.CodeActionKindQuickFix, true
	for _, diagnostic := range s.diagnose(d) {
		at := d.rangeOf(diagnostic.Range)
		if before(at.End, p.Range.Start) || before(p.Range.End, at.Start) {
			continue
		}
		for _, fix := range diagnostic.Fixes {
			actions = append(actions, &protocol.CodeAction{
				Title: fix.Title, Kind: &kind, IsPreferred: &preferred, Edit: d.workspaceEdit(fix.Edits),
				Diagnostics: d.protocolDiagnostics([]languageservice.Diagnostic{diagnostic}),
			})
		}
	}
	return actions, nil
}

func before(a, b protocol.Position) bool {
	return a.Line < b.Line || a.Line == b.Line && a.Character < b.Character
}

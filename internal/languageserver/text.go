package languageserver

import (
	"strings"
	"unicode/utf8"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/languageservice"
)

// text is a text with the positions of the protocol: lines count from 0, and characters are units of UTF-16.
type text struct {
	*languageservice.Text
	source string
	lines  []string
}

func newText(service *languageservice.Service, source string) *text {
	return &text{Text: service.Open(source), source: source, lines: strings.Split(source, "\n")}
}

// units returns the number of units of UTF-16 of a character.
func units(r rune) uint32 {
	const first = 0x10000 // the first character with two
	if r >= first {
		return 2
	}
	return 1
}

func (t *text) pos(p protocol.Position) dsl.Pos {
	pos := dsl.Pos{Line: int(p.Line) + 1, Column: 1}
	if int(p.Line) >= len(t.lines) {
		return pos
	}
	at := uint32(0)
	for _, r := range t.lines[p.Line] {
		if at += units(r); at > p.Character {
			break
		}
		pos.Column++
	}
	return pos
}

func (t *text) position(pos dsl.Pos) protocol.Position {
	if pos.Line < 1 {
		return protocol.Position{}
	}
	p := protocol.Position{Line: uint32(pos.Line - 1)} //nolint:gosec // the size of a text is limited
	if pos.Line > len(t.lines) {
		return p
	}
	rest := t.lines[pos.Line-1]
	for column := 1; column < pos.Column && rest != ""; column++ {
		r, size := utf8.DecodeRuneInString(rest)
		p.Character += units(r)
		rest = rest[size:]
	}
	return p
}

func (t *text) rangeOf(r languageservice.Range) protocol.Range {
	return protocol.Range{Start: t.position(r.Start), End: t.position(r.End)}
}

func (t *text) edit(e languageservice.Edit) protocol.TextEdit {
	return protocol.TextEdit{Range: t.rangeOf(e.Range), NewText: e.Text}
}

func (d *document) workspaceEdit(edits []languageservice.Edit) *protocol.WorkspaceEdit {
	list := make([]protocol.TextEdit, len(edits))
	for i, e := range edits {
		list[i] = d.edit(e)
	}
	return &protocol.WorkspaceEdit{Changes: map[uri.URI][]protocol.TextEdit{d.uri: list}}
}

func (t *text) protocolDiagnostics(found []languageservice.Diagnostic) []protocol.Diagnostic {
	list := make([]protocol.Diagnostic, len(found))
	for i, f := range found {
		message := f.Message
		if f.Suggestion != "" {
			message += " (" + f.Suggestion + ")"
		}
		severity := protocol.DiagnosticSeverityError
		if f.Severity == dsl.SeverityWarning {
			severity = protocol.DiagnosticSeverityWarning
		}
		list[i] = protocol.Diagnostic{
			Range: t.rangeOf(f.Range), Severity: severity, Code: protocol.String(f.Code),
			Source: protocol.NewOptional("signalbox"), Message: protocol.String(message),
		}
	}
	return list
}

func (t *text) protocolSymbols(symbols []languageservice.Symbol) []protocol.DocumentSymbol {
	list := make([]protocol.DocumentSymbol, len(symbols))
	for i, s := range symbols {
		kind := protocol.SymbolKindFunction
		if s.Kind == languageservice.SymbolDefinition {
			kind = protocol.SymbolKindConstant
		}
		list[i] = protocol.DocumentSymbol{
			Name: s.Name, Detail: &s.Detail, Kind: kind, Range: t.rangeOf(s.Range), SelectionRange: t.rangeOf(s.Selected),
			Children: t.protocolSymbols(s.Children),
		}
	}
	return list
}

package handler

import (
	"context"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/languageservice"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
)

// AssistDocument returns what an editor shows at a position of a document.
func (h *Workflows) AssistDocument(
	ctx context.Context, req *connect.Request[signalboxv1.AssistDocumentRequest],
) (*connect.Response[signalboxv1.AssistDocumentResponse], error) {
	if _, err := h.projects.Get(ctx, message.ProjectOf(req.Msg.GetProject())); err != nil {
		return nil, err
	}
	pos := dsl.Pos{Line: int(req.Msg.GetLine()), Column: int(req.Msg.GetColumn())}
	text := languageservice.New().Open(req.Msg.GetSource())
	res := &signalboxv1.AssistDocumentResponse{}
	for _, c := range text.Complete(pos) {
		res.Completions = append(res.Completions, &signalboxv1.Completion{
			Label: c.Label, Kind: string(c.Kind), Detail: c.Detail, Documentation: c.Doc, Text: c.Edit.Text,
			StartColumn: int32(c.Edit.Range.Start.Column), //nolint:gosec // the size of a document is limited
		})
	}
	if hover, ok := text.Hover(pos); ok {
		res.Documentation = hover.Doc
	}
	return connect.NewResponse(res), nil
}

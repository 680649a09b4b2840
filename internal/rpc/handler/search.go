package handler

import (
	"context"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/rpc/message"
	"github.com/signalbox-dev/signalbox/internal/search"
)

// SearchService is the domain's search.
type SearchService interface {
	Search(ctx context.Context, req search.Request) ([]search.Group, error)
}

// Searches implements signalbox.v1.SearchService.
type Searches struct{ service SearchService }

// Search finds things by a text.
func (h *Searches) Search(
	ctx context.Context, req *connect.Request[signalboxv1.SearchRequest],
) (*connect.Response[signalboxv1.SearchResponse], error) {
	m := req.Msg
	groups, err := h.service.Search(ctx, search.Request{
		Project: message.ProjectOf(m.GetProject()), Text: m.GetText(), Limit: int(m.GetLimit())})
	res := &signalboxv1.SearchResponse{}
	for _, g := range groups {
		group := &signalboxv1.SearchGroup{Kind: string(g.Kind), More: g.More}
		for _, hit := range g.Hits {
			group.Hits = append(group.Hits, hitMessage(hit))
		}
		res.Groups = append(res.Groups, group)
	}
	return message.Reply(res, err)
}

func hitMessage(h search.Hit) *signalboxv1.SearchHit {
	m := &signalboxv1.SearchHit{
		Project: h.Project, Id: h.ID, Title: h.Title, Detail: h.Detail, Status: h.Status, Workflow: h.Workflow,
		Version: h.Version, Position: h.Position, Webhook: h.Webhook, Time: message.Timestamp(h.At), Field: h.Field,
	}
	for _, p := range h.Parts {
		m.Parts = append(m.Parts, &signalboxv1.SearchPart{Text: p.Text, Match: p.Match})
	}
	return m
}

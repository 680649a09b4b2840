package problem

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWebhookProblems(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w := FailingWebhook{Project: "shop", Name: "pager", Since: since, Error: "the receiver answered 500", Pending: 3,
		Dead: 2, FirstDead: since, LastDead: since.Add(time.Hour)}
	list := webhookFindings(w)
	require.Len(t, list, 2)
	require.Equal(t, []any{"platform.shop.WEBHOOK_FAILING.pager", "the receiver answered 500", "pager", int64(3), since},
		[]any{list[0].ID, list[0].Detail, list[0].Cause, list[0].Count, list[0].First})
	require.Equal(t, []any{"platform.shop.WEBHOOK_DELIVERIES_DEAD.pager", int64(2), since.Add(time.Hour)},
		[]any{list[1].ID, list[1].Count, list[1].Last})
	w.PausedAt, w.Dead = since, 0
	list = webhookFindings(w)
	require.Len(t, list, 1, "a paused webhook is one problem")
	require.Equal(t, "platform.shop.WEBHOOK_PAUSED.pager", list[0].ID)
	require.Contains(t, list[0].Advice, "webhook unpause pager --project shop")
	for _, f := range list {
		require.True(t, f.Counted())
		require.Equal(t, fromWebhooks, sourceOf(f))
		project, valid := projectOf(f.ID)
		require.Equal(t, []any{"shop", true}, []any{project, valid})
	}
	require.Empty(t, webhookFindings(FailingWebhook{Project: "shop", Name: "pager"}))
}

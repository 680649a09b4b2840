package outbox_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/outbox"
	"github.com/signalbox-dev/signalbox/internal/run"
)

var ended = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func failedRun(id string) run.Run {
	return run.Run{
		ID: id, Project: "shop", Workflow: "shop/order", Version: "1.0.0", Status: run.Failed, Trigger: run.TriggerAPI,
		CreatedAt: ended.Add(-time.Minute),
		EndedAt:   ended, Error: &run.Error{
			Type: "x", Title: strings.Repeat("é", 2000), Detail: "the password is 4711", Instance: "/do/0/charge"},
	}
}

// memory is a store of one project. It refuses the first moves.
type memory struct {
	mu      sync.Mutex
	waiting []event.Event
	moved   []event.Event
	refuses int
}

func (m *memory) Waiting(context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waiting) == 0 {
		return nil, nil
	}
	return []string{"shop"}, nil
}

func (m *memory) Move(_ context.Context, _ string, limit int,
	complete func(event.Event) event.Event) (int, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuses > 0 {
		m.refuses--
		return 0, false, context.DeadlineExceeded
	}
	n := min(limit, len(m.waiting))
	for _, e := range m.waiting[:n] {
		m.moved = append(m.moved, complete(e))
	}
	m.waiting = m.waiting[n:]
	return n, true, nil
}

func TestPublisherMovesAllAndLinksRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{refuses: 1}
		for range 250 {
			m.waiting = append(m.waiting, outbox.OfRun(failedRun("r1")))
		}
		m.waiting = append(m.waiting,
			outbox.OfDelivery(event.Delivery{ID: "d", Project: "shop", RunID: "r1", UpdatedAt: ended}))
		var commits int
		p := outbox.NewPublisher(
			outbox.Options{Store: m, PublicURL: "https://signalbox.example.com/ui/",
				Committed: func(_ context.Context, project string, wake bool) {
					require.Equal(t, []any{"shop", true}, []any{project, wake})
					commits++
				}})
		require.NoError(t, p.Start(t.Context()))
		synctest.Wait()
		m.mu.Lock()
		require.Empty(t, m.moved, "the store refuses")
		m.mu.Unlock()
		<-time.After(time.Second)
		require.NoError(t, p.Stop(t.Context()))
		require.Len(t, m.moved, 251)
		require.Equal(t, 3, commits)
		require.Contains(t, string(m.moved[0].Data), `"url":"https://signalbox.example.com/ui/runs/r1"`)
		require.NotContains(t, string(m.moved[250].Data), `"url"`)
		limits := event.DefaultLimits()
		for _, e := range m.moved {
			require.Empty(t, limits.Check("", e))
		}
	})
}

// The detail of an error may quote anything, and is not in the event.
func TestEventHasNoDetail(t *testing.T) {
	t.Parallel()
	e := outbox.OfRun(failedRun("r1"))
	require.NotContains(t, string(e.Data), "4711")
	require.Less(t, len(e.Data), 2000, "long titles are shortened")
	var data struct {
		Error struct{ Title string }
		Task  struct{ Name, Pointer string }
	}
	require.NoError(t, json.Unmarshal(e.Data, &data))
	require.True(t, strings.HasSuffix(data.Error.Title, "é…"))
	require.Equal(t, []string{"charge", "/do/0/charge"}, []string{data.Task.Name, data.Task.Pointer})
}

package sealed

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/batch"
)

// Batches is a store of batch work that writes nothing sensitive: the error of an item may quote values of its run.
type Batches struct {
	BatchStore

	sealer *Sealer
}

var _ batch.WorkStore = (*Batches)(nil)

// Batches returns a store that writes to the given one with marks.
func (sl *Sealer) Batches(below BatchStore) *Batches { return &Batches{BatchStore: below, sealer: sl} }

// WriteItems implements [batch.WorkStore].
func (s *Batches) WriteItems(ctx context.Context, id string, items []batch.Item, at time.Time) error {
	var ids []string
	for _, item := range items {
		if item.Error != "" {
			ids = append(ids, item.RunID)
		}
	}
	known, err := s.sealer.rereadAll(ctx, ids)
	if err != nil {
		return err
	}
	hidden := make([]Sealed[batch.Item], len(items))
	for i, item := range items {
		if item.Error != "" {
			item.Error = known[item.RunID].redact(item.Error)
		}
		hidden[i] = marked(item)
	}
	return s.BatchStore.WriteItems(ctx, id, hidden, at)
}

// SetWaitReason implements [batch.WorkStore].
func (s *Batches) SetWaitReason(ctx context.Context, id, runID, why string) (kept string, err error) {
	shown, err := s.sealer.Text(ctx, runID, why)
	if err != nil {
		return "", err
	}
	return shown, s.BatchStore.SetWaitReason(ctx, id, marked(shown))
}

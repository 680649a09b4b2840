package vault

import (
	"context"
	"time"

	"github.com/signalbox-dev/signalbox/internal/batch"
)

// Batches is a store of the work of batches into which nothing sensitive is written: the error of an item may quote values of its run.
type Batches struct {
	BatchStore

	vault *Vault
}

var _ batch.WorkStore = (*Batches)(nil)

// Batches returns the store with marks in what is written through it.
func (v *Vault) Batches(below BatchStore) *Batches { return &Batches{BatchStore: below, vault: v} }

// SettleItems implements [batch.WorkStore].
func (s *Batches) SettleItems(ctx context.Context, id string, items []batch.Item, at time.Time) error {
	var ids []string
	for _, item := range items {
		if item.Error != "" {
			ids = append(ids, item.RunID)
		}
	}
	known, err := s.vault.rereadAll(ctx, ids)
	if err != nil {
		return err
	}
	hidden := make([]Sealed[batch.Item], len(items))
	for i, item := range items {
		if item.Error != "" {
			item.Error = known[item.RunID].says(item.Error)
		}
		hidden[i] = marked(item)
	}
	return s.BatchStore.SettleItems(ctx, id, hidden, at)
}

// NoteWaiting implements [batch.WorkStore].
func (s *Batches) NoteWaiting(ctx context.Context, id, runID, why string) (kept string, err error) {
	shown, err := s.vault.Text(ctx, runID, why)
	if err != nil {
		return "", err
	}
	return shown, s.BatchStore.NoteWaiting(ctx, id, marked(shown))
}

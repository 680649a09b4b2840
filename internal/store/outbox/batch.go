package outbox

import (
	"context"

	"github.com/signalbox-dev/signalbox/internal/batch"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/outbox"
	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// AddBatch writes the event that reports the end of a batch, in the transaction that writes that end.
func AddBatch(ctx context.Context, c sqldb.Conn, d sqldb.Dialect, b batch.Batch) error {
	wanted, err := interests(ctx, c, d, []batch.Batch{b}, func(b batch.Batch) (string, string) {
		return b.Project, event.BatchEnded
	})
	if err != nil || len(wanted) == 0 {
		return err
	}
	return add(ctx, c, d, []event.Event{outbox.OfBatch(b)})
}

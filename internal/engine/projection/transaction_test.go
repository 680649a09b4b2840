package projection_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/run"
)

func TestWriterDividesLargeUpdates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &fakeStore{}
		w := projection.NewWriter(l, l, time.Now)
		large := update("large", 7, steps(1, 4500)...)
		large.Summary = &run.StepSummary{From: 5001, To: 6000, Position: 7}
		large.Sensitive = []string{"secret"}
		w.Accept(queue, large, time.Now())
		w.Accept(queue, update("small", 3, steps(1, 1)...), time.Now())
		require.NoError(t, w.Start(t.Context()))
		synctest.Wait()
		require.Equal(t, []string{"large@7/2000", "large@7/2000", "large@7/500", "small@3/1"}, l.writtenRuns())
		for _, batch := range l.batches[:2] {
			part := batch[0]
			require.True(t, part.Partial)
			require.Nil(t, part.State, "the state is written with the last steps")
			require.Nil(t, part.Summary)
			require.Equal(t, large.Sensitive, part.Sensitive, "each part carries the sensitive texts")
		}
		last := l.batches[2][0]
		require.False(t, last.Partial)
		require.Equal(t, large.State, last.State)
		require.Equal(t, large.Summary, last.Summary)
		require.NoError(t, w.Stop(t.Context()))
	})
}

func TestWriterBoundsTheBytesOfATransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &fakeStore{}
		w := projection.NewWriter(l, l, time.Now)
		for n := range 3 {
			heavy := update(fmt.Sprint("r", n), 3, steps(1, 200)...)
			for i := range heavy.Steps {
				heavy.Steps[i].Input = make([]byte, 16<<10)
				heavy.Steps[i].Output = make([]byte, 16<<10)
			}
			w.Accept(queue, heavy, time.Now())
		}
		huge := update("huge", 3, steps(1, 2)...)
		huge.Steps[0].Output = make([]byte, 9<<20)
		w.Accept(queue, huge, time.Now())
		require.NoError(t, w.Start(t.Context()))
		synctest.Wait()
		written := 0
		for _, batch := range l.batches {
			bytes := 0
			for _, u := range batch {
				written += len(u.Steps)
				bytes += u.Size()
			}
			if len(batch[0].Steps) > 1 {
				require.LessOrEqual(t, bytes, 4<<20+4<<10)
			}
		}
		require.Equal(t, 602, written)
		require.NoError(t, w.Stop(t.Context()))
	})
}

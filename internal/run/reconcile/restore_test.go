package reconcile_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/run"
)

func (b *bench) comparisons(t *testing.T) run.Comparisons {
	t.Helper()
	known, err := b.store.Comparisons(b.ctx)
	require.NoError(t, err)
	return known
}

// openWithoutRow adds an open run that started a while ago and has no row.
func (b *bench) openWithoutRow(id string, ago time.Duration) {
	b.endedWithoutRow(id, ago)
	b.engine.set(func() {
		x := b.engine.ended[len(b.engine.ended)-1]
		x.Open, x.ClosedAt = true, time.Time{}
		b.engine.ended, b.engine.listed, b.engine.known[id] = b.engine.ended[:len(b.engine.ended)-1],
			append(b.engine.listed, x), x
	})
}

// A run that the database lacks, after a time without comparisons, was started after the backup: new runs are held
// before any row is compared.
func TestRestoreIsFound(t *testing.T) {
	for name, lost := range map[string]func(b *bench){
		"open":  func(b *bench) { b.openWithoutRow("lost", 10*time.Minute) },
		"ended": func(b *bench) { b.endedWithoutRow("lost", 10*time.Minute) },
		"beside foreign ones": func(b *bench) {
			b.engine.listed = append(b.engine.listed, b.execution("foreign"))
			b.openWithoutRow("lost", time.Minute)
		},
		"in another process": func(b *bench) { b.restart(); b.openWithoutRow("lost", 10*time.Minute) },
		"several, open and ended": func(b *bench) {
			b.openWithoutRow("lost", time.Minute)
			b.endedWithoutRow("lost too", 20*time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				b.restored(t, time.Hour)
				backup := b.comparisons(t).ComparedAt
				require.WithinDuration(t, time.Now().Add(-time.Hour), backup, time.Minute)
				lost(b)
				b.pass(t, true)
				require.Empty(t, b.held, "a dry run changes nothing")

				b.pass(t, false)
				require.Len(t, b.held, 1)
				require.Contains(t, b.held[0], "the database was restored to its state of "+backup.UTC().Format(time.RFC3339))
				known := b.comparisons(t)
				require.True(t, known.RestoredTo.Equal(backup))
				require.WithinDuration(t, time.Now(), known.RestoredAt, time.Minute)
				require.Equal(t, "request-lost", b.row(t, "lost").RequestID)

				b.openWithoutRow("later", time.Minute)
				b.pass(t, false)
				require.Len(t, b.held, 1, "once")
				require.Equal(t, known.RestoredAt, b.comparisons(t).RestoredAt)
			})
		})
	}
}

// Nothing else is taken for a restore.
func TestOthersAreNoRestore(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, b *bench){
		"a row that was deleted in operation": func(t *testing.T, b *bench) {
			b.restored(t, 30*time.Second)
			b.openWithoutRow("lost", 25*time.Second)
		},
		"executions of others": func(t *testing.T, b *bench) {
			b.restored(t, time.Hour)
			b.engine.listed = append(b.engine.listed, b.execution("foreign"))
			<-time.After(time.Minute)
		},
		"a pause":           func(t *testing.T, b *bench) { b.waiting(t, "r1", "r2"); b.restored(t, time.Hour) },
		"an empty database": func(_ *testing.T, b *bench) { b.openWithoutRow("lost", time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				prepare(t, b)
				b.pass(t, false)
				require.Empty(t, b.held)
				require.True(t, b.comparisons(t).RestoredAt.IsZero())
			})
		})
	}
}

// While new runs cannot be held, no row is adopted: otherwise the next pass would find nothing.
func TestRestoreIsFoundAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.restored(t, time.Hour)
		b.openWithoutRow("lost", 10*time.Minute)
		b.holdFails = errors.New("no database")
		report, err := b.Reconcile(b.ctx, false)
		require.NoError(t, err)
		require.Equal(t, "run lost: no database", report.FailedBecause)
		require.True(t, b.comparisons(t).RestoredAt.IsZero())
		b.holdFails = nil
		require.True(t, slices.Contains(b.pass(t, false), "adopted lost true"))
		require.False(t, b.comparisons(t).RestoredAt.IsZero())
	})
}

// Whether a row is missing is not known while its execution is young: the next pass decides.
func TestYoungExecutionsDecideLater(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.restored(t, time.Hour)
		b.openWithoutRow("lost", 10*time.Second)
		report, err := b.Reconcile(b.ctx, true)
		require.NoError(t, err)
		require.Equal(t, run.Lost{Young: 1}, report.Lost)
		b.pass(t, false)
		require.Empty(t, b.held)
		<-time.After(30 * time.Second)
		b.pass(t, false)
		require.Len(t, b.held, 1)
	})
}

// After a restore the histories of runs that are open on both sides are read again, although their rows are not behind:
// the database may lack listeners.
func TestOpenRunsAreReadAgainAfterARestore(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.waiting(t, "r1", "r2")
		b.restored(t, time.Hour)
		b.openWithoutRow("lost", 10*time.Minute)
		b.engine.set(func() {
			for _, id := range []string{"r1", "r2", "lost"} {
				b.engine.rebuilt[id] = b.update(id, 20, run.Waiting)
			}
		})
		rebuilt := func(dry bool) []string {
			b.engine.called()
			b.pass(t, dry)
			<-time.After(time.Minute)
			return slices.DeleteFunc(b.engine.called(), func(call string) bool { return !strings.HasPrefix(call, "rebuild ") })
		}
		require.Empty(t, rebuilt(true), "a dry run changes nothing")
		require.Equal(t, []string{"rebuild lost", "rebuild r1", "rebuild r2"}, rebuilt(false))
		require.Empty(t, rebuilt(false), "once")
	})
}

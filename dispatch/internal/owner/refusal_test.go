package owner_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
)

// A store that answers reads and refuses writes ends the ownership once, allocates no further epochs, and is asked with
// growing pauses.
func TestStoreThatRefusesWrites(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		a := f.start("a")
		advance(time.Second)
		f.actions()
		a.store.refuse(errors.New("no permission"))
		advance(time.Minute)
		require.Equal(t, []dispatchtype.Outcome{dispatchtype.ColdStart, dispatchtype.Lost}, a.outcomes())
		failures := len(a.events().failures)
		require.Positive(t, failures)
		require.Less(t, failures, 12, "the pauses grow")
		require.Nil(t, a.Owned())
		a.store.refuse(nil)
		advance(20 * time.Second)
		require.Equal(t, []string{"adopt run-1 a/2"}, f.actions())
	})
}

//go:build unix

package filebox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/inbox/inboxtest"
	"github.com/signalbox-dev/signalbox/examples/dispatch/filebox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func done(context.Context, inbox.Name, inbox.Delivery) inbox.Outcome {
	return inbox.Outcome{Result: inbox.Done}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	inboxtest.Run(t, func(t *testing.T) inboxtest.Fixture {
		in, err := filebox.New(filepath.Join(t.TempDir(), "inbox.json"), done)
		require.NoError(t, err)
		return inboxtest.Fixture{
			Inbox: in,
			Name:  func(n int) inbox.Name { return inbox.Name{Project: fmt.Sprintf("p%d", n), TaskQueue: "q"} },
			Accept: func(t *testing.T, name inbox.Name, lane string) bool {
				wake, err := in.Publish(name, lane, "event")
				require.NoError(t, err)
				return wake
			},
		}
	})
}

// TestStateIsDurable opens the file a second time, as the next process does.
func TestStateIsDurable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "inbox.json")
	name := inbox.Name{Project: "p", TaskQueue: "q"}
	first, err := filebox.New(path, done)
	require.NoError(t, err)
	_, err = first.Publish(name, "ada", map[string]string{"text": "hello"})
	require.NoError(t, err)
	owner, err := first.Fence(t.Context(), name, "a", 0)
	require.NoError(t, err)
	claimed, err := first.Claim(t.Context(), name, owner, 10, time.Hour)
	require.NoError(t, err)
	require.Len(t, claimed, 1)

	second, err := filebox.New(path, done)
	require.NoError(t, err)
	next, err := second.Fence(t.Context(), name, "b", 0)
	require.NoError(t, err)
	require.Greater(t, next.Epoch, owner.Epoch)
	again, err := second.Claim(t.Context(), name, next, 10, time.Hour)
	require.NoError(t, err)
	require.Len(t, again, 1)
	require.Equal(t, claimed[0].ID, again[0].ID)
	require.Equal(t, 2, again[0].Attempt)
	require.JSONEq(t, `{"text": "hello"}`, string(again[0].Item.(json.RawMessage)))
	_, err = first.Claim(t.Context(), name, owner, 10, time.Hour)
	require.ErrorIs(t, err, inbox.ErrFenced)
}

func TestNewRequiresFolder(t *testing.T) {
	t.Parallel()
	_, err := filebox.New(filepath.Join(t.TempDir(), "nowhere", "inbox.json"), done)
	require.ErrorContains(t, err, "nowhere")
}

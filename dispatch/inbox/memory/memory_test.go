package memory_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/inbox/inboxtest"
	"github.com/signalbox-dev/signalbox/dispatch/inbox/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func done(context.Context, inbox.Name, inbox.Delivery) inbox.Outcome {
	return inbox.Outcome{Result: inbox.Done}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	inboxtest.Run(t, func(*testing.T) inboxtest.Fixture {
		in := memory.New(done)
		return inboxtest.Fixture{
			Inbox: in,
			Name:  func(n int) inbox.Name { return inbox.Name{Project: fmt.Sprintf("p%d", n), TaskQueue: "q"} },
			Accept: func(_ *testing.T, name inbox.Name, lane string) bool {
				return in.Publish(name, lane, "event")
			},
		}
	})
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	in := memory.New(done)
	name := inbox.Name{Project: "p", TaskQueue: "q"}
	in.Publish(name, "", "event")
	owner, err := in.Fence(t.Context(), name, "a", 0)
	require.NoError(t, err)
	got, err := in.Claim(t.Context(), name, owner, 1, 0)
	require.NoError(t, err)
	require.Equal(t, "event", got[0].Item)
	require.Equal(t, inbox.Outcome{Result: inbox.Done}, in.Deliver(t.Context(), name, got[0]))
	require.NoError(t, in.RecordOutcomes(t.Context(), name, owner,
		[]inbox.DeliveryOutcome{{ID: got[0].ID, Outcome: inbox.Outcome{Result: inbox.Dead, Reason: "no such target"}}}))
	require.Equal(t, []memory.Dead{{Delivery: got[0], Reason: "no such target"}}, in.Dead(name))
}

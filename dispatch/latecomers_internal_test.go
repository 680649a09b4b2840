package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/inbox/memory"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/heart"
	"github.com/signalbox-dev/signalbox/dispatch/internal/owner"
	"github.com/signalbox-dev/signalbox/lease"
)

// sleeper is a client of a dispatcher that notes what it is told, and answers with a state.
type sleeper struct {
	client.Client
	told  [][]string
	asked int
	state contract.State
	mute  error
}

func (s *sleeper) SignalWorkflow(_ context.Context, _, _, _ string, arg any) error {
	s.told = append(s.told, arg.(contract.Late).ServerIDs)
	return nil
}

func (s *sleeper) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	s.asked++
	return answer{s.state}, s.mute
}

type answer struct{ state contract.State }

func (answer) HasValue() bool { return true }

func (a answer) Get(into any) error {
	text, err := json.Marshal(a.state)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// knows has the dispatcher know workers.
func (s *sleeper) knows(ids ...string) {
	s.state.Workers = nil
	for _, id := range ids {
		s.state.Workers = append(s.state.Workers, contract.Worker{ServerID: id})
	}
}

// watcher is a process that owns a dispatcher and reads what it is given of heartbeats.
type watcher struct {
	*sleeper
	*Dispatchers
	lives map[string]heart.Life
	owned []owner.Ownership
	known map[Name]*telling
}

func newWatcher(t *testing.T, late ...string) *watcher {
	s := &sleeper{state: contract.State{Phase: contract.Parked}}
	d, err := New(Options{
		ServerID: "me", Client: func() (client.Client, error) { return s, nil }, Namespace: "default", Leases: lease.NewMemory(),
		Inbox: memory.New(func(context.Context, inbox.Name, inbox.Delivery) inbox.Outcome {
			return inbox.Outcome{Result: inbox.Done}
		}),
	})
	require.NoError(t, err)
	shop := Name{Project: "shop", TaskQueue: "orders"}
	w := &watcher{sleeper: s, Dispatchers: d, lives: map[string]heart.Life{}, known: map[Name]*telling{}}
	w.owned = []owner.Ownership{{Name: shop, Owner: inbox.Owner{Epoch: 1, Holder: "me"}}}
	for _, id := range late {
		w.lives[id] = heart.Life{Beat: contract.Beat{Projects: []string{"shop"}, Serves: 1}}
	}
	return w
}

// watch reads the heartbeats every five seconds.
func (w *watcher) watch(t *testing.T, d time.Duration) {
	t.Helper()
	for range d / (5 * time.Second) {
		w.tell(t.Context(), w.lives, w.owned, w.known)
		<-time.After(5 * time.Second)
	}
}

// TestADispatcherIsToldAgainOfWhomItStillHas: it could not read the heartbeats, or saw one of two that died together once only.
func TestADispatcherIsToldAgainOfWhomItStillHas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher(t, "a", "b")
		w.knows("a", "b", "me")
		w.watch(t, 20*time.Second)
		require.Equal(t, [][]string{{"a", "b"}}, w.told)
		require.Zero(t, w.asked, "it gets the time for a check")
		w.knows("b", "me")
		w.watch(t, 20*time.Second)
		require.Equal(t, [][]string{{"a", "b"}, {"b"}}, w.told)
		w.watch(t, 24*time.Hour)
		require.Less(t, len(w.told), 160, "the pauses grow")
		require.Greater(t, len(w.told), 100, "up to ten minutes")

		w.knows("me")
		w.watch(t, time.Hour)
		told, asked := len(w.told), w.asked
		w.watch(t, 3*24*time.Hour)
		require.Len(t, w.told, told, "of nobody whom it has struck off")
		require.Equal(t, asked, w.asked)
	})
}

// TestADispatcherIsToldOfThoseOnItsListAlone where many ran out: thousands of names in the history of each dispatcher would serve nothing.
func TestADispatcherIsToldOfThoseOnItsListAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ids []string
		for i := range 1000 {
			ids = append(ids, fmt.Sprintf("dead-%03d", i))
		}
		w := newWatcher(t, ids...)
		w.knows("dead-007", "dead-700", "me")
		w.mute = errors.New("nobody polls")
		w.watch(t, time.Hour)
		require.Empty(t, w.told)
		require.Less(t, w.asked, 30, "the pauses grow")
		w.mute = nil
		w.watch(t, 11*time.Minute)
		require.Equal(t, []string{"dead-007", "dead-700"}, w.told[0])
		w.knows("me")
		w.watch(t, time.Hour)
		told, asked := len(w.told), w.asked
		w.watch(t, time.Hour)
		require.Equal(t, []int{told, asked}, []int{len(w.told), w.asked}, "it has struck them off")

		w.knows("late", "me")
		w.lives["late"] = heart.Life{Beat: contract.Beat{Projects: []string{"shop"}, Serves: 1}}
		w.watch(t, 10*time.Second)
		require.Equal(t, []string{"late"}, w.told[len(w.told)-1])
		require.Equal(t, asked, w.asked, "few are told at once")
		for _, late := range w.told {
			require.LessOrEqual(t, len(late), 2)
		}
	})
}

// TestADispatcherIsAskedOnceForManyThatItDoesNotHave, and none is reported to it.
func TestADispatcherIsAskedOnceForManyThatItDoesNotHave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher(t)
		for i := range 1000 {
			w.lives[fmt.Sprint("dead-", i)] = heart.Life{Beat: contract.Beat{Projects: []string{"shop"}, Serves: 1}}
		}
		w.knows("me")
		w.watch(t, time.Hour)
		require.Empty(t, w.told)
		require.Equal(t, 1, w.asked)
	})
}

func TestNobodyIsDoubtedWhoIsBackOrLookedAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher(t, "a")
		w.knows("a", "me")
		w.state.Phase = contract.Routing
		w.watch(t, time.Hour)
		require.Len(t, w.told, 1, "one that routes looks after its workers")
		w.mute, w.state.Phase = errors.New("nobody polls"), contract.Parked
		w.watch(t, time.Hour)
		require.Len(t, w.told, 1)
		require.Less(t, w.asked, 30)
		w.mute = nil
		w.watch(t, time.Hour)
		require.Greater(t, len(w.told), 1)
		told := len(w.told)
		w.lives["a"] = heart.Life{Alive: true, Beat: contract.Beat{Projects: []string{"shop"}, Serves: 1}}
		w.watch(t, time.Hour)
		require.Len(t, w.told, told)
		w.lives["a"] = heart.Life{Beat: contract.Beat{Projects: []string{"shop"}, Serves: 1}}
		w.watch(t, 5*time.Second)
		require.Len(t, w.told, told+1, "it died once more")
	})
}

// TestAnotherOwnershipTellsAnew: while this process owned nothing, it may not even have seen that, as the leases were away.
func TestAnotherOwnershipTellsAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher(t, "a")
		w.watch(t, 10*time.Second)
		require.Len(t, w.told, 1)
		w.owned[0].Owner.Epoch = 3
		w.watch(t, 10*time.Second)
		require.Len(t, w.told, 2)
		w.owned = nil
		w.watch(t, 10*time.Second)
		require.Empty(t, w.known)
	})
}

func TestLatecomers(t *testing.T) {
	t.Parallel()
	life := func(project string, alive bool) heart.Life {
		return heart.Life{Alive: alive, Beat: contract.Beat{Projects: []string{project}, Serves: 1}}
	}
	o := owner.Ownership{Name: Name{Project: "shop", TaskQueue: "orders"}, Workers: []contract.Worker{{ServerID: "forgotten"}, {ServerID: "alive"}}}
	lives := map[string]heart.Life{"alive": life("shop", true), "b": life("shop", false), "a": life("shop", false), "elsewhere": life("bank", false)}
	known := map[string]bool{"before": true, "alive": true}
	late := latecomers(lives, o, known)
	require.Equal(t, []string{"a", "b", "forgotten"}, late)
	require.Empty(t, known, "who is back, and of whom nothing is left, is not kept for ever")
	for _, id := range late {
		known[id] = true
	}
	require.Empty(t, latecomers(lives, o, known), "each is told of once")
	delete(lives, "a")
	lives["b"] = life("shop", true)
	require.Empty(t, latecomers(lives, o, known))
	require.Equal(t, map[string]bool{"forgotten": true}, known)
}

package conntest_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/signalbox-dev/signalbox/conn/conntest"
)

// After concurrent faults have ended, the frontend works again, and Close ends everything.
func TestConcurrentFaults(t *testing.T) {
	t.Parallel()
	bothWays(t, conntest.Options{}, func(t *testing.T, f *conntest.Frontend) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		faults := []func(){
			f.Stop, func() { _ = f.Restart() }, f.CutConnections, f.Freeze, f.Thaw,
			func() { f.Blackhole(conntest.ToServer) }, func() { f.Blackhole(conntest.ToClient) }, f.Restore,
			f.LoseConnections, f.Mute, f.Unmute, f.GoAway, func() { f.Slow(time.Millisecond) }, func() { f.Slow(0) },
			func() {
				f.Fail("", serviceerror.NewUnavailable("no"))
			}, func() { f.FailNext(3, "Check", serviceerror.NewUnavailable("no")) },
			func() { f.Clear() }, func() { f.SetAPIKeys("key") }, func() { f.SetAPIKeys() },
			func() { f.SetNamespaces("default", "orders") }, func() { f.RemoveNamespace("orders") },
			func() { f.Connections(); f.Accepted(); f.Calls(""); f.Pollers("orders"); f.Starts() },
		}
		ended := make(chan struct{})
		var clients, actors sync.WaitGroup
		for range 2 {
			c := connect(t, f)
			clients.Go(func() {
				for {
					select {
					case <-ended:
						return
					default:
						_ = describe(within(t, 10*time.Millisecond), c, "default")
					}
				}
			})
		}
		for i := range uint64(3) {
			actors.Go(func() {
				random := rand.New(rand.NewPCG(seed, i))
				for range 300 {
					faults[random.IntN(len(faults))]()
				}
			})
		}
		actors.Wait()
		f.Thaw()
		f.Restore()
		f.Unmute()
		f.Slow(0)
		f.Clear()
		f.SetAPIKeys()
		require.NoError(t, f.Restart())
		awaitAnswer(t, connect(t, f))
		close(ended)
		clients.Wait()
	})
}

// Package leasetest is the conformance suite of [lease.Store]. The stores in memory and in Redis pass it, and any other
// store must.
//
//	func TestStore(t *testing.T) {
//		t.Parallel()
//		leasetest.Run(t, func(t *testing.T) lease.Store { return newEmptyStore(t) })
//	}
//
// [Run] runs one test for each guarantee, which takes a few seconds. The last one runs random clients against the store
// through a [Recorder], and checks the recorded history with [Verify]. Waits and checks use the store's clock, which
// must run at about the same speed as this process's clock.
//
// Verify can be used by itself, on the history of other clients under other faults. It finds, among other things, two
// holders at one time, repeated tokens, writes with a token that is no longer current, revisions that do not grow, and
// states that contradict the times. It finds only what the history contains: a history without stale tokens proves
// nothing about them.
package leasetest

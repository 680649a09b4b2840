// Package leasetest holds a [lease.Store] to what the interface promises: ours in memory and in Redis, and anybody's.
//
//	func TestStore(t *testing.T) {
//		t.Parallel()
//		leasetest.Run(t, func(t *testing.T) lease.Store { return newEmptyStore(t) })
//	}
//
// [Run] makes each promise a test, takes a few seconds, and then lets clients at random at the store through a [Recorder] and
// judges what they saw by [Judge]. Both waits and judgement go by the store's own clock; that and this process's clock must run at
// about the same speed.
//
// Judge can be used by itself, on the history of other clients under other faults. It finds, among others, two holders at one time, tokens
// that come twice, writes under a token that is no longer the current one, revisions that do not grow, and states that the times do
// not bear out. It does not find what nobody asked for: a history without stale tokens proves nothing about them.
package leasetest

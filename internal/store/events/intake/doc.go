// Package intake is where events come in: it gives them their positions, keeps them and reads them.
//
// [Store.Publish], [Store.GetEvent] and [Store.ListEvents] are those of vault.EventStore. The other methods work in a transaction of
// their caller. [Store.Lock] holds a project's inbox: with the dialect's LockRows to accept events or to park, with its ShareRows to
// know that what is committed with it lies between two events.
//
// It knows neither who wants events nor what is delivered; of the dispatchers it reads how far they have routed.
package intake

// Package interest keeps what wants events: listeners of runs, triggers of workflows with the sets of events that they have
// collected, and timers.
//
// [Store.Listen], [Store.Unlisten], [Store.GetListener] and [Store.ListTimers] are those of vault.EventStore and event.TimerStore. The
// other methods, and [EndListeners], work in a transaction of their caller: what wants events comes and goes with the
// publication of its workflow and the end of its run.
//
// Listeners and triggers are found by the types that they can want, so that those of other types cost an event nothing. It
// matches nothing beyond that.
package interest

// Package supervise finds what crashed processes left behind, and cleans it up: dispatchers that nobody owns or works for, and
// entries of owners that are gone.
//
// A cycle observes, plans, confirms and acts. What to do is decided by package plan, twice: once from a reading of
// everything, and once more, a little later, from a reading of only what would be acted upon. What changed in between is dropped.
//
// Before it terminates a dispatcher, the supervisor takes its lease in place of the entry that it read. So nobody can adopt
// what is about to be terminated, of several supervisors one acts, and what it leaves behind when it dies halfway is
// an entry like any crashed owner's. Then it terminates, by run ID, and only then it deletes the entry. Of a termination that failed the
// entry stays, runs out, and is found again.
//
// Any number of processes may supervise at once. What cannot be read makes a failed cycle, never a stale dispatcher.
package supervise

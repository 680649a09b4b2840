// Package diagnose finds the runs that make no progress although they should, and determines why.
//
// One elected process makes a pass every two seconds, and sooner when a run is about to be overdue. One query returns
// the runs with overdue progress. One description of each task queue that they use, and Temporal's list of executions
// with problems, decide most of them. The others are described one by one, at most fifty a second. A verdict is stored
// with its run and announced by an event of the platform in the same transaction. It is cleared as soon as the run
// makes progress or ends.
//
//	w := diagnose.New(store, platform, engine, diagnose.Options{…})
//	err := w.Start(ctx)
//	counts, acting := w.Counts() // for metrics: only the elected process has counts
//
// The decision is a pure function, [Decide]. Times are those of the servers and of Temporal; no client's clock is used.
// The watcher changes no run, except that it ends poison runs in projects that set end_poison.
//
// # Verdict
//
// [Decide] determines whether one run is stuck, and why, from its row, the connection, the pollers of its task queue
// and, where those are not enough, its execution. It performs no I/O, so tests cover all combinations of facts.
//
//	since, due := diagnose.Due(row, now, after)
//	switch d := diagnose.Decide(facts); d.Action {
//	case diagnose.Describe: // describe the execution, and decide again
//	}
//
// Facts come in stages, the cheap ones first: one description of a queue decides all runs that wait for it.
package diagnose

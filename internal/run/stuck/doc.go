// Package stuck finds the runs that make no progress although they should, and says why.
//
// Every two seconds, and sooner when a run is about to be overdue, one process of all looks: one query finds the runs whose progress is overdue; one answer of Temporal for each
// task queue that they wait for, and its list of executions with problems, judge most of them; the rest is described one by
// one, fifty a second at most. What is found is kept with the run, told as an event of the platform in the transaction that
// keeps it, and taken back as soon as the run goes on or ends.
//
//	w := stuck.New(store, engine, stuck.Options{…})
//	err := w.Start(ctx)
//	counts, acting := w.Counts() // for metrics: only the process that looks knows them
//
// The judgement is a pure function, in package verdict. Time is that of the servers: no client's clock is asked. Nothing is
// done to any run.
package stuck

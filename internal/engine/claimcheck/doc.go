// Package claimcheck keeps the large payloads of runs in Signalbox's database: Temporal gets references to them (the claim check
// pattern), so that a value may be larger than Temporal takes, and histories stay small.
//
//	storage := claimcheck.New(store.Payloads(), claimcheck.Options{})
//	options.ExternalStorage = storage.External()                // of each client, and of each replayer of histories
//	err := storage.Resolve(ctx, message)                        // for code that reads payloads from the service itself
//
// The SDK calls the driver outside workflow code: before a workflow task is given to it and after it has returned, before an activity
// and after it, and in clients. So neither the deadlock detector nor determinism is concerned, and a failure fails the task, which Temporal
// gives to a worker again. What the driver gets was encoded, and sealed, by the data converter: the database holds sealed bytes.
//
// A payload goes out of the history when it is larger than [Threshold]; a smaller one from [smallest] on, once its execution has many of
// them. A value belongs to the run in whose history the reference stands, and lives as long as that run's row. Continue-as-new and
// resets keep the run; whatever crosses from one run to another (inputs of children, their results, events, replays) is encoded
// again there, and so is a value of its own.
//
// Reads go through a cache that is bounded in bytes, one for each process. Calls of the database are repeated for [Options.Patience], which
// is less than the time in which Temporal gives a task to another worker.
package claimcheck

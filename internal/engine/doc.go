// Package engine is the Temporal side of Signalbox: a client that starts, controls, repairs and diagnoses runs
// ([Engine]), and the workers that execute them ([Workers]). Temporal is the only engine.
//
//	e, err := engine.New(engine.Options{…})
//	err = e.Writer().Start(ctx)    // writes the records of workflow tasks as rows
//	err = e.Manager().Start(ctx)   // connects, and reconnects
//	w := engine.NewWorkers(e, projects, calls, engine.WorkerOptions{…})
//
// Package contract defines the names in Temporal, package flow the interpreter's workflow, package projection the
// updates of rows, and package schedule the fire times of workflows.
package engine

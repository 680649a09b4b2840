// Package flow runs the interpreter (dsl/interp) as a Temporal workflow: it performs the machine's effects as timers,
// activities and local activities, and hands its records to a sink in the same process.
//
// There is one workflow, [Workflow.Run], for all documents. A worker registers it and two activities:
//
//	w := flow.New(ctx, documents, sink, flow.DefaultLimits())
//	registry.RegisterWorkflowWithOptions(w.Run, workflow.RegisterOptions{Name: …})
//	registry.RegisterActivityWithOptions(httpCall, activity.RegisterOptions{Name: flow.HTTPActivity})
//	registry.RegisterActivityWithOptions(flow.Barrier, activity.RegisterOptions{Name: flow.BarrierActivity})
//
// The package knows nothing of stores, projects' queues or HTTP clients.
package flow

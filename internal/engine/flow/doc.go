// Package flow runs the interpreter (dsl/interp) as a Temporal workflow: it executes the machine's effects as timers,
// activities and local activities, and passes its records to a sink in the same process.
//
// There is one workflow, [Workflow.Run], for all documents. A worker registers it and these activities:
//
//	w := flow.New(ctx, documents, sink, flow.DefaultLimits())
//	registry.RegisterWorkflowWithOptions(w.Run, workflow.RegisterOptions{Name: …})
//	registry.RegisterActivityWithOptions(httpCall, activity.RegisterOptions{Name: flow.HTTPActivity})
//	registry.RegisterActivityWithOptions(flow.Barrier, activity.RegisterOptions{Name: flow.BarrierActivity})
//	registry.RegisterActivityWithOptions(listen, activity.RegisterOptions{Name: flow.ListenActivity})
//	registry.RegisterActivityWithOptions(unlisten, activity.RegisterOptions{Name: flow.UnlistenActivity})
//	registry.RegisterActivityWithOptions(emit, activity.RegisterOptions{Name: flow.EmitActivity})
//	registry.RegisterActivityWithOptions(quota, activity.RegisterOptions{Name: flow.QuotaActivity})
//	registry.RegisterActivityWithOptions(child, activity.RegisterOptions{Name: flow.ChildActivity})
//	registry.RegisterActivityWithOptions(cancelChild, activity.RegisterOptions{Name: flow.CancelChildActivity})
//
// Events reach a run as signals, [Wake]. They are handled before all other results, and before a run continues as new:
// the machine's snapshot carries the events that are not consumed yet, so none is lost. The same holds for controls,
// [Control], and for completions of child runs, [ChildEnded].
//
// The package does not depend on stores, projects' queues or HTTP clients.
package flow

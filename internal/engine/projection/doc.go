// Package projection makes rows follow Temporal.
//
// The interpreter makes records of runs and steps while it executes a workflow task. [Tap] holds them until Temporal has
// accepted the task, [Writer] then writes them in batches. So rows never tell of something that Temporal has not taken,
// and neither a slow nor an absent store ever holds up a run.
//
//	writer := projection.NewWriter(store, observer, time.Now)
//	tap := projection.NewTap(time.Now, writer.Accept)
//	options.ConnectionOptions.DialOptions = append(…, grpc.WithChainUnaryInterceptor(tap.Intercept))
//	workflow := flow.New(…, tap, …)
//
// What is lost with a process between acceptance and write is made up for by [Rebuild], which interprets a history
// again and gets the same records.
package projection

// Package projection updates the rows of runs according to Temporal.
//
// The interpreter creates records of runs and steps while it executes a workflow task. [Tap] holds them until Temporal
// has accepted the task, and [Writer] then writes them in batches. Rows thus never show anything that Temporal has not
// accepted, and an unavailable or slow store does not block runs.
//
//	writer := projection.NewWriter(store, observer, time.Now)
//	tap := projection.NewTap(time.Now, writer.Accept)
//	options.ConnectionOptions.DialOptions = append(…, grpc.WithChainUnaryInterceptor(tap.Intercept))
//	workflow := flow.New(…, tap, …)
//
// [Rebuild] restores records that were lost with a process between acceptance and write: it interprets a history again,
// which creates the same records.
package projection

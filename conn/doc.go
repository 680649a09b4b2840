// Package conn maintains a connection to Temporal, and the workers on it, for the lifetime of a process.
//
// A service that uses Temporal through this package can start before Temporal or after it. It survives restarts,
// outages and rotated credentials without a restart of its own, its workers keep polling, and it can check at any time
// whether Temporal can be used:
//
//	m, err := conn.New(conn.Options{Client: client.Options{HostPort: "temporal:7233"}})
//	err = m.Register("orders", func(c client.Client) (worker.Worker, error) {
//		w := worker.New(c, "orders", worker.Options{})
//		w.RegisterWorkflow(Order)
//		return w, nil
//	})
//	err = m.Start(ctx)               // returns at once, with or without Temporal
//	c, err := m.Client()             // the current client or a *DownError, without waiting
//	err = m.Stop(stopping)           // lets workers finish until stopping ends: a context with a timeout, not that which an interrupt cancels
//
// # Generations
//
// A client and its workers are one generation, which is replaced as a whole. Most outages replace nothing: gRPC
// reconnects, and the workers' polls, which have waited for the connection, continue. A new generation is made when
// only a new client is answered, when polls were refused, after a very long outage, and when address, credentials,
// namespace or the server's capabilities have changed.
//
// The new generation is made before the old one ends: a new client is checked, new workers are started on it, Client
// returns the new client, and the hooks are called with it. Only then do the old workers stop, finish the tasks they
// have begun, and is their client closed. If a step fails, the old generation continues. This also holds at the end of
// an outage: where no new client can be made and the old one is answered, the old generation continues.
//
// # Guarantees
//
//   - Start never waits for Temporal. Client, Status and Borrow never block.
//   - Client returns an error while the connection is not up, so a program that calls it for each request fails fast.
//   - At most one attempt to connect is under way. Attempts back off (1, 2, 4, 8, 16, 30 s, each up to 20 % longer, so
//     that many
//     processes do not connect at once). A sign of life ends the back-off early: a ready connection, new credentials,
//     an operator.
//   - A worker that fails to start, or dies, is made again with its own back-off, and does not delay the others.
//   - After any Stop has returned nil, no goroutine and no connection is left.
//
// # Limits
//
// A request that was sent when the connection broke may or may not have arrived: only the server has that information.
// An activity whose completion cannot be delivered for about ten seconds runs again, as Temporal's at-least-once
// guarantee allows. A connection that is up may be lost before the next request is sent.
//
// Package conntest has a Temporal frontend to test all this with.
package conn

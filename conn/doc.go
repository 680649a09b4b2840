// Package conn keeps up a connection to Temporal, and the workers on it, for as long as a process lives.
//
// A service that uses Temporal through it starts in any order with Temporal, survives restarts, outages and rotated
// credentials without being restarted, always has workers that poll, and knows at once whether Temporal can be used:
//
//	m, err := conn.New(conn.Options{Client: client.Options{HostPort: "temporal:7233"}})
//	err = m.Register("orders", func(c client.Client) (worker.Worker, error) {
//		w := worker.New(c, "orders", worker.Options{})
//		w.RegisterWorkflow(Order)
//		return w, nil
//	})
//	err = m.Start(ctx)               // at once, with or without Temporal
//	c, err := m.Client()             // the current client, or why there is none: never waits
//	err = m.Stop(ctx)                // lets workers finish, within ctx
//
// # Generations
//
// A client and its workers are one generation, replaced as a whole and behind one pointer. Most outages replace nothing: gRPC
// connects again, and the workers' polls, which have waited for that, go on. When only a new client gets through, when
// pollers were refused, after a very long outage, and when address, credentials, namespace or the server's capabilities are
// others, a new generation is made before the old one is broken: a new client is checked, new workers are started on it,
// everybody gets the new client, hooks are told, and only then do the old workers stop, finish what they have begun, and is
// their client closed. A failure on the way leaves the old generation serving, and so it is at the end of an outage: where no new
// client is to be had and the old one is answered, it goes on.
//
// # What is guaranteed
//
//   - Start never waits for Temporal. Client, Status and Borrow never wait for anything.
//   - Client returns an error while the connection is not up: whoever asks before each request fails fast.
//   - At most one attempt to connect is under way. Attempts back off (1, 2, 4, 8, 16, 30 s, up to 20 % more, so that many
//     processes spread), and a sign of life cuts the wait short: a ready connection, new credentials, an operator.
//   - A worker that fails to start, or dies, is made again at its own pace and keeps no other back.
//   - After any Stop has returned nil, no goroutine and no connection is left.
//
// # What is not
//
// A request that was sent when the connection broke may or may not have arrived: only the server can tell. Activities whose
// completion cannot be delivered for about ten seconds run again, as Temporal promises. A connection that is up may still
// be lost by the time that a request is sent.
//
// Package conntest has a Temporal frontend to test all this with.
package conn

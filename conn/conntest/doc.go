// Package conntest is a Temporal frontend for tests of what happens when the connection to Temporal suffers: it can be slowed,
// cut, frozen, lost and made to refuse, at any time and as often as a test likes.
//
// On its own a [Frontend] answers as much as an SDK client and its workers need to connect, poll and start workflows, without any
// Temporal behind it. With Options.Upstream it stands in front of a real Temporal and passes everything through unchanged, so
// that the same faults happen to real workflows.
//
//	frontend := conntest.Run(t, conntest.Options{})
//	c, _ := client.NewLazyClient(client.Options{HostPort: frontend.Addr()})
//	w := worker.New(c, "orders", worker.Options{})
//	_ = w.Start()
//	_ = frontend.AwaitPollers(ctx, "orders", 1) // the worker is at work
//	frontend.Freeze()                           // as SIGSTOP does
//	_, err := c.CheckHealth(ctx, nil)           // runs into ctx's deadline
//	frontend.Thaw()
//	frontend.Stop()                             // as a killed process, whose port refuses
//	err = frontend.Restart()
//
// # Faults
//
// Each fault is in effect when its method returns, is undone by its counterpart, and knows nothing of the others: a frontend that
// is stopped while frozen is still frozen after its restart.
//
//	Stop, Restart           the process is gone: connections are reset, new ones refused; Options.Stopped starts so
//	CutConnections          connections are reset, new ones are welcome
//	Freeze, Thaw            the process hangs: connections stay and new ones are accepted, but not a byte passes
//	Blackhole, Restore      packets of one direction are dropped; TCP sends them again after Restore, so nothing is lost
//	Forget                  the network has lost all connections there are: they stay silent for ever, new ones work
//	Mute, Unmute            connections to come are accepted and stay silent for ever
//	GoAway                  connections are asked to end, as a frontend does every five minutes: calls in flight go on
//	Flap                    Stop and Restart, again and again
//	Slow                    answers take longer
//	Fail, FailNext, Clear   calls are answered with an error
//	Stall, Unstall          calls of some methods are not answered
//	SetNamespaces, RemoveNamespace, SetAPIKeys, SetTLS   what the frontend knows, and whom it lets in
//
// Calls that had arrived before a freeze or a black hole go on behind it, as they would in a server whose network is gone.
//
// # Observations
//
// [Frontend.Connections], [Frontend.Accepted], [Frontend.Calls], [Frontend.Pollers] and [Frontend.Starts] tell what clients do;
// [Frontend.Await] and its relatives wait for it without looking at the clock.
//
// What it does not do: it gives no tasks to workers unless a real Temporal stands behind it, checks no permissions beyond keys and
// certificates, and listens on 127.0.0.1 only.
package conntest

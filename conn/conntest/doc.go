// Package conntest is a Temporal frontend for tests of faults in the connection to Temporal: it can be slowed, cut,
// frozen and made to refuse calls, at any time and any number of times.
//
// By itself a [Frontend] answers the calls that an SDK client and its workers need to connect, poll and start
// workflows, without a Temporal server. With Options.Upstream it is a proxy in front of a real Temporal and passes all
// calls through unchanged, so that the same faults can be applied to real workflows.
//
//	frontend := conntest.Run(t, conntest.Options{})
//	c, _ := client.NewLazyClient(client.Options{HostPort: frontend.Addr()})
//	w := worker.New(c, "orders", worker.Options{})
//	_ = w.Start()
//	_ = frontend.AwaitPollers(ctx, "orders", 1) // the worker polls
//	frontend.Freeze()                           // as SIGSTOP does
//	_, err := c.CheckHealth(ctx, nil)           // fails at ctx's deadline
//	frontend.Thaw()
//	frontend.Stop()                             // as a killed process: the port refuses connections
//	err = frontend.Restart()
//
// # Faults
//
// Each fault is in effect when its method returns, is undone by its counterpart, and is independent of the others: a
// frontend that is stopped while frozen is still frozen after its restart.
//
//	Stop, Restart           the process is gone: connections are reset, new ones refused; Options.Stopped starts in this state
//	CutConnections          connections are reset, new ones are accepted
//	Freeze, Thaw            the process hangs: connections stay and new ones are accepted, but no byte passes
//	Blackhole, Restore      packets of one direction are dropped; TCP sends them again after Restore, so nothing is lost
//	LoseConnections         the network has lost all open connections: they stay silent forever, new ones work
//	Mute, Unmute            future connections are accepted and stay silent forever
//	GoAway                  connections are asked to end, as a frontend does every five minutes: calls in flight continue
//	Flap                    Stop and Restart, repeatedly
//	Slow                    answers take longer
//	Fail, FailNext, Clear   calls are answered with an error
//	Stall, Unstall          calls of some methods are not answered
//	SetNamespaces, RemoveNamespace, SetAPIKeys, SetTLS   existing namespaces, accepted keys and certificates
//
// Calls that arrived before Freeze or Blackhole are still executed, as in a server that has lost its network.
//
// # Observations
//
// [Frontend.Connections], [Frontend.Accepted], [Frontend.Calls], [Frontend.Pollers] and [Frontend.Starts] report what
// clients do; [Frontend.Await], [Frontend.AwaitPollers] and [Frontend.AwaitCalls] wait for it without polling.
//
// The package gives no tasks to workers unless it has an upstream, checks no permissions beyond keys and certificates,
// and listens on 127.0.0.1 only.
package conntest

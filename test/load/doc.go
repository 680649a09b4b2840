// Package load starts runs at a steady pace, whatever happens to the platform meanwhile, and afterwards judges what became
// of them.
//
//	l := load.Start(t, server, workflow, 20*time.Millisecond)
//	… break things …
//	l.Stop()
//	load.Judge(t, load.Evidence{Loads: []*load.Load{l}, Server: server, Temporal: client, Limit: time.Minute})
//
// Every request carries a request ID of its own, so that also a request whose answer was lost can be looked up. The verdict
// rests on the rows of the platform and the executions of Temporal, never on what the generator believes.
package load

// Package load starts runs at a steady pace, regardless of what happens to the platform, and afterwards verifies the
// outcome of each.
//
//	l := load.Start(t, server, workflow, 20*time.Millisecond)
//	… break things …
//	l.Stop()
//	load.Judge(t, load.Evidence{Loads: []*load.Load{l}, Server: server, Temporal: client, Limit: time.Minute})
//
// Every request carries its own request ID, so that a request whose answer was lost can be looked up. The verification
// uses the rows of the platform and the executions of Temporal, not the generator's own records alone.
package load

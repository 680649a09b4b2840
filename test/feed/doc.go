// Package feed publishes events at a steady pace, regardless of what happens to the platform, and afterwards verifies
// the outcome of each.
//
//	f := feed.Start(t, feed.Options{Type: "order.placed", PerSecond: 50, Servers: servers})
//	… break things …
//	f.Stop(t)
//	feed.Judge(t, feed.Evidence{Feed: f, Server: server, Starts: []string{workflow}, Limit: time.Minute})
//
// It behaves as a producer should: an event whose answer was lost is published again, with the same ID, until the
// platform has answered. So every event is accepted in the end, and must have exactly one effect on each of its
// targets. The verification uses the rows of the platform, not the producer's own records alone.
package feed

// Package feed publishes events at a steady pace, whatever happens to the platform meanwhile, and afterwards judges what became
// of them.
//
//	f := feed.Start(t, feed.Options{Type: "order.placed", PerSecond: 50, Servers: servers})
//	… break things …
//	f.Stop(t)
//	feed.Judge(t, feed.Evidence{Feed: f, Server: server, Starts: []string{workflow}, Limit: time.Minute})
//
// It behaves as a producer should: an event whose answer was lost is published again, with the same ID, until the platform has
// answered. So every event is accepted in the end, and each has to have exactly one effect on everybody who wants it. The
// verdict rests on the rows of the platform, never on what the producer believes.
package feed

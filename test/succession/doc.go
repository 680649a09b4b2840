// Package succession reads from Temporal who owned a dispatcher, execution by execution, and judges it: never two open at a
// time, epochs that only grow, every end before the next beginning.
//
//	line := succession.Read(t, client, "dispatcher-default-signalbox-default")
//	succession.Judge(t, line)
//
// It looks at what Temporal has recorded, never at what the platform says of itself.
package succession

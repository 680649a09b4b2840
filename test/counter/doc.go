// Package counter counts what a process holds: TCP connections to a port, goroutines, and whatever else its metrics tell.
// Tests compare the counts before and after a bad day: what does not come back has leaked.
package counter

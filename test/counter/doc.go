// Package counter counts the resources of a process: TCP connections to a port, goroutines, and any metric it serves.
// Tests compare the counts before and after a fault: a count that does not return to its value shows a leak.
package counter

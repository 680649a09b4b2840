// Package succession reads the owners of a dispatcher from Temporal, execution by execution, and verifies the rules:
// never two open at a time, epochs only increase, each execution ends before the next begins.
//
//	line := succession.Read(t, client, "dispatcher-default-signalbox-default")
//	succession.Judge(t, line)
//
// It uses Temporal's records only, not the platform's own reports.
package succession

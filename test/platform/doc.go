// Package platform drives the real binaries for black-box tests and benchmarks: it starts `signalbox dev`,
// `signalbox dev temporal` and `signalbox server` as child processes on free ports with their data in temporary folders,
// waits until they are ready, runs the CLI against them, and stops, kills or freezes them.
//
// The binaries are named by the variables SIGNALBOX_BIN (full) and SIGNALBOX_SERVER_BIN (lean), which `make test` sets.
// Without them a test that needs one fails and says so.
//
// A test gets its own processes with [StartDev], [StartTemporal] and [StartServer]; they end with it. What all tests of a
// package share is made once, by a [Shared], and ends with [Main].
//
// Children get none of the caller's environment but PATH, so that settings of whoever runs the tests change nothing.
package platform

// Package platform drives the real binaries for black-box tests and benchmarks: it starts `signalbox dev`, `signalbox
// dev temporal` and `signalbox server` as child processes on free ports with their data in temporary folders, waits
// until they are ready, runs the CLI against them, and stops, kills or freezes them.
//
// The binaries are named by the variables SIGNALBOX_BIN (full) and SIGNALBOX_SERVER_BIN (lean), which `make test` sets.
// Without them a test that needs one fails with a message that names the variable.
//
// A test gets its own processes with [StartDev], [StartTemporal] and [StartServer]; they are stopped when it ends.
// Processes that all tests of a package share are started once, by a [Shared], and are stopped by [Main].
//
// Child processes inherit PATH alone from the caller's environment, so that other settings of the machine do not affect
// the tests.
package platform

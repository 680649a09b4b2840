package command

import "runtime"

// peakMiB is the memory that the program has taken from the system: it is not given back, so this is the most that it had.
func peakMiB() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys >> 20
}

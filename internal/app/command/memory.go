package command

import "runtime"

// peakMiB returns the memory that the program has obtained from the system. It is never given back, so this is the peak
// use.
func peakMiB() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys >> 20
}

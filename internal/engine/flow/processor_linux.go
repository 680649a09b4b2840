package flow

import (
	"syscall"
	"time"
)

// threadTime returns the processor time that the calling thread has used. The time in which it waited for a processor,
// or was not allowed to use one, does not count.
func threadTime() time.Duration {
	const thisThread = 1 // RUSAGE_THREAD
	var usage syscall.Rusage
	if err := syscall.Getrusage(thisThread, &usage); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

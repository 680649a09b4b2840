package flow

import (
	"fmt"
	"runtime"
	"time"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
)

// piece is a piece of compute: it runs on one thread from begin to the function that begin returns.
type piece struct {
	began  time.Time     // by the clock
	thread time.Duration // the processor time of the thread at the beginning
}

// begin begins a piece. The thread is locked until it ends: another one has another processor time.
func (p *piece) begin() (end func()) {
	runtime.LockOSThread()
	p.began, p.thread = time.Now(), threadTime()
	return runtime.UnlockOSThread
}

// tookLonger reports whether the piece has used more than limit of a processor. On a machine that is busy, or that
// limits the process, the clock shows far more. It is read first, because it costs less.
func (p *piece) tookLonger(limit time.Duration) bool {
	return time.Since(p.began) > limit && threadTime()-p.thread > limit
}

// watch makes the machine panic when a piece of compute uses more than longest of a processor. The panic fails the
// workflow task, never the run, so the run does not depend on a clock.
//
// Fuel bounds every piece to a fraction of a second, so this happens only if the price of a function is far too low.
// The SDK's deadlock detector fails the task as well, but leaves the goroutine behind: it continues to compute, holds
// its project's turn, publishes its results, and stays until the process ends.
func (d *driver) watch(longest time.Duration) {
	d.machine.Watch(func() {
		if d.computing.tookLonger(longest) {
			panic(fmt.Sprintf("%s (%v)", contract.ComputesTooLong, longest))
		}
	})
}

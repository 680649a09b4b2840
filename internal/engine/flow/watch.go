package flow

import (
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
)

// watch makes the machine panic when a piece of compute takes more than longest. The panic fails the workflow task,
// never the run, so the run does not depend on a clock.
//
// Fuel bounds every piece to a fraction of a second, so this happens only if the price of a function is far too low.
// The SDK's deadlock detector fails the task as well, but leaves the goroutine behind: it continues to compute, holds
// its project's turn, publishes its results, and stays until the process ends.
func (d *driver) watch(longest time.Duration) {
	d.machine.Watch(func() {
		if time.Since(d.computing) > longest {
			panic(fmt.Sprintf("%s (%v)", contract.ComputesTooLong, longest))
		}
	})
}

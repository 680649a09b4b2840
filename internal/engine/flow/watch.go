package flow

import (
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
)

// watch panics while the machine computes a piece that began more than longest ago. The panic fails the workflow task, never the run, so that
// nothing that the run does depends on a clock.
//
// Fuel bounds every piece to a fraction of a second, so this happens only where the price of a function is far too low. The SDK's deadlock
// detector fails the task as well, but leaves the goroutine behind: it goes on to compute, holds its project's turn, publishes what it has
// computed, and stays for as long as the process lives.
func (d *driver) watch(longest time.Duration) {
	d.machine.Watch(func() {
		if time.Since(d.computing) > longest {
			panic(fmt.Sprintf("%s (%v)", contract.ComputesTooLong, longest))
		}
	})
}

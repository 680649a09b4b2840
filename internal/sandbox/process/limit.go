//go:build linux && (amd64 || arm64)

package process

import (
	"context"
	"fmt"
	"math"
	"time"
)

// resourceLimits returns the begin of a command line that sets the resource limits of each process, from within the isolation:
// only there does the limit of processes count those of the user namespace alone. The low priority lets the other
// processes of the host compute first.
func (x *execution) resourceLimits(ctx context.Context) []string {
	list := []string{
		"nice", "-n", "10", "prlimit", "--core=0", "--memlock=0",
		fmt.Sprintf("--nofile=%d", openFiles), fmt.Sprintf("--fsize=%d", x.limits.Disk),
	}
	if x.sandbox.opts.Isolation == Bubblewrap {
		// Without a namespace the limit would count all processes of the user.
		list = append(list, fmt.Sprintf("--nproc=%d", x.limits.Processes+ownProcesses))
	}
	if x.group == nil {
		list = append(list, fmt.Sprintf("--as=%d", x.limits.Memory))
	}
	if deadline, bounded := ctx.Deadline(); bounded {
		seconds := math.Ceil(time.Until(deadline).Seconds()) * x.limits.Processors
		list = append(list, fmt.Sprintf("--cpu=%d", max(int64(seconds), 1)))
	}
	return list
}

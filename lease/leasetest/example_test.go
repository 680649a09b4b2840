package leasetest_test

import (
	"context"
	"fmt"

	"github.com/signalbox-dev/signalbox/lease"
	"github.com/signalbox-dev/signalbox/lease/leasetest"
)

// RunLoad and Verify test a store under a fault of one's choice, here none.
func ExampleVerify() {
	store := lease.NewMemory()
	calls := leasetest.RunLoad(context.Background(), store, leasetest.Load{Keys: 2, Clients: 3, Calls: 50, Seed: 1})
	fmt.Println("contradictions:", len(leasetest.Verify(calls)))
	// Output:
	// contradictions: 0
}

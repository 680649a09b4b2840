package memory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/inbox/memory"
)

// An owner claims the events of a dispatcher, delivers them and records the outcomes. Claims of earlier owners are
// rejected.
func ExampleInbox() {
	ctx := context.Background()
	name := inbox.Name{Project: "shop", TaskQueue: "orders"}
	in := memory.New(func(_ context.Context, _ inbox.Name, d inbox.Delivery) inbox.Outcome {
		fmt.Println("delivered:", d.Item)
		return inbox.Outcome{Result: inbox.Done}
	})
	in.Publish(name, "customer-7", "order placed")
	in.Publish(name, "customer-7", "order paid")

	previous, _ := in.Fence(ctx, name, "worker-1", 0)
	owner, _ := in.Fence(ctx, name, "worker-2", 0)
	_, err := in.Claim(ctx, name, previous, 10, time.Minute)
	fmt.Println(err)

	claimed, _ := in.Claim(ctx, name, owner, 10, time.Minute)
	var outcomes []inbox.DeliveryOutcome
	for _, d := range claimed {
		outcomes = append(outcomes, inbox.DeliveryOutcome{ID: d.ID, Outcome: in.Deliver(ctx, name, d)})
	}
	fmt.Println("recorded:", in.RecordOutcomes(ctx, name, owner, outcomes))
	parked, _ := in.Park(ctx, name, owner)
	fmt.Println("parked:", parked)
	fmt.Println("doorbell needed:", in.Publish(name, "customer-8", "order placed"))
	// Output:
	// fenced: the dispatcher has another owner
	// delivered: order placed
	// delivered: order paid
	// recorded: <nil>
	// parked: true
	// doorbell needed: true
}

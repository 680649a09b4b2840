package dispatch_test

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/client"

	"github.com/signalbox-dev/signalbox/dispatch"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/inbox/memory"
	"github.com/signalbox-dev/signalbox/lease"
)

// disconnected returns no client: the process is not connected to Temporal yet.
func disconnected() (client.Client, error) { return nil, errors.New("not connected to Temporal") }

// deliver delivers every event successfully.
func deliver(context.Context, inbox.Name, inbox.Delivery) inbox.Outcome {
	return inbox.Outcome{Result: inbox.Done}
}

// The process serves a dispatcher before it is connected to Temporal. Events are accepted meanwhile.
func ExampleDispatchers() {
	ctx := context.Background()
	events := memory.New(deliver)
	d, err := dispatch.New(dispatch.Options{
		ServerID: "orders-7f3a", Namespace: "default", Client: disconnected, Leases: lease.NewMemory(), Inbox: events,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := d.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	name := dispatch.Name{Project: "shop", TaskQueue: "orders"}
	if err := d.Serve(name); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("doorbell needed:", events.Publish(name, "customer-7", "order placed"))
	fmt.Println("owned:", len(d.Owned()))
	fmt.Println(d.RequestHandover(ctx, name, "ann", "deploy"))
	fmt.Println("stopped:", d.Stop(ctx))
	// Output:
	// doorbell needed: false
	// owned: 0
	// request handover of "dispatcher-shop-orders": the dispatcher has no owner
	// stopped: <nil>
}

func ExampleID() {
	fmt.Println(dispatch.ID("shop", "orders"))
	fmt.Println(dispatch.ID("shop", "Orders"))
	// Output:
	// dispatcher-shop-orders <nil>
	//  task queue "Orders": only lower-case letters, digits and dashes
}

// Validate returns all problems, one per line.
func ExampleOptions_Validate() {
	fmt.Println(dispatch.Options{ServerID: "orders-7f3a", Namespace: "default", Client: disconnected}.Validate())
	// Output:
	// leases: missing
	// inbox: missing
}

func ExampleTiming() {
	t := dispatch.Timing{}.WithDefaults()
	fmt.Println("lease:", t.TTL, "renewed every", t.Renew)
	t.Renew = t.TTL
	fmt.Println(t.Validate())
	// Output:
	// lease: 9s renewed every 3s
	// renew 9s is not shorter than ttl 9s
	// renew and margin 10s is not shorter than ttl 9s
}

// A source that cannot be read is reported with each dispatcher.
func ExampleOverview() {
	ctx := context.Background()
	name := dispatch.Name{Project: "shop", TaskQueue: "orders"}
	events := memory.New(deliver)
	events.Publish(name, "", "order placed")
	o, err := dispatch.NewOverview(dispatch.OverviewOptions{
		Client: disconnected, Namespace: "default", Leases: lease.NewMemory(), Inbox: events,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	list, err := o.List(ctx)
	for _, d := range list {
		fmt.Println(d.WorkflowID, d.Status, "pending:", d.Progress.Pending)
		for _, e := range d.Errors {
			fmt.Printf("%s: %s\n", e.Part, e.Err)
		}
	}
	fmt.Println(err)
	// Output:
	// dispatcher-shop-orders unknown pending: 1
	// temporal: not connected to Temporal
	// <nil>
}

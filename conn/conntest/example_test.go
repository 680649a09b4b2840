package conntest_test

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/signalbox-dev/signalbox/conn/conntest"
)

// A frozen server does not refuse calls: they fail at their deadlines.
func ExampleFrontend_Freeze() {
	frontend, err := conntest.New(conntest.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = frontend.Close() }()
	c, err := client.NewLazyClient(client.Options{HostPort: frontend.Addr(), Logger: noLogger{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	check := func(limit time.Duration) {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		err := describe(ctx, c, "default")
		fmt.Println(status.Code(err) == codes.OK)
	}

	check(10 * time.Second)
	frontend.Freeze()
	check(100 * time.Millisecond)
	frontend.Thaw()
	check(10 * time.Second)
	// Output:
	// true
	// false
	// true
}

// Fail answers calls of one method with an error, with the details of a real server.
func ExampleFrontend_Fail() {
	frontend, err := conntest.New(conntest.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = frontend.Close() }()
	c, err := client.NewLazyClient(client.Options{HostPort: frontend.Addr(), Logger: noLogger{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	frontend.Fail("DescribeNamespace", serviceerror.NewPermissionDenied("no access", ""))
	fmt.Println(describe(ctx, c, "default"))
	frontend.Clear()
	fmt.Println(describe(ctx, c, "default"))
	fmt.Println("calls:", frontend.Calls("DescribeNamespace"))
	// Output:
	// no access
	// <nil>
	// calls: 2
}

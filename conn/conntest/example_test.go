package conntest_test

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/signalbox-dev/signalbox/conn/conntest"
)

// A frozen server does not refuse calls; it lets them run into their deadlines.
func ExampleFrontend_Freeze() {
	frontend, err := conntest.New(conntest.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = frontend.Close() }()
	c, err := client.NewLazyClient(client.Options{HostPort: frontend.Addr(), Logger: silent{}})
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

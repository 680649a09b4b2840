package redislease_test

import (
	"fmt"

	"github.com/signalbox-dev/signalbox/lease/redislease"
)

// A store connects when it is first used, so Open needs no running Redis. It refuses options that cannot work.
func ExampleOpen() {
	store, err := redislease.Open(redislease.Options{URL: "redis://127.0.0.1:6379", Prefix: "reports:"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = store.Close() }()
	fmt.Printf("%T\n", store)
	// Output: *redislease.Store
}

package lease_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "dispatcher:shop:orders"

// terms and pace are those of a dispatcher: the lease is trusted for 14 s after each request.
var (
	lifetime = lease.Lifetime{TTL: 15 * time.Second, Retention: 10 * time.Minute}
	options  = lease.KeepOptions{Interval: 5 * time.Second, Lifetime: lifetime}
)

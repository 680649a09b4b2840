package lease_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "dispatcher:shop:orders"

// terms and pace are those of a dispatcher: trusted for 14 s after each request.
var (
	terms = lease.Terms{TTL: 15 * time.Second, Retention: 10 * time.Minute}
	pace  = lease.Pace{Renew: 5 * time.Second, Terms: terms}
)

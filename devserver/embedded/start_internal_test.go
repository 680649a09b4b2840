package embedded

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// With a fiftieth of a processor, the services took more than the 15 s that Temporal gives them by default, and the
// start failed.
func TestStartHasTimeOnABusyMachine(t *testing.T) {
	t.Parallel()
	s := &Server{}
	require.GreaterOrEqual(t, s.config(portSet{}).Global.Membership.MaxJoinDuration, 5*time.Minute)
}

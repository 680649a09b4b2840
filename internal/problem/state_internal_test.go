package problem

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The state of a record is that of the problem with the same count and handling.
func TestStateOfARecord(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for name, tt := range map[string]struct {
		handling Handling
		want     State
	}{
		"nothing was done":             {Handling{}, Open},
		"acknowledged":                 {Handling{AcknowledgedAt: now, SnoozeUntil: now.Add(1)}, Acknowledged},
		"snoozed until later":          {Handling{SnoozeUntil: now.Add(1)}, Snoozed},
		"snoozed until now":            {Handling{SnoozeUntil: now}, Open},
		"snoozed until a higher count": {Handling{SnoozeCount: 6}, Snoozed},
		"the count is reached":         {Handling{SnoozeCount: 5}, Open},
	} {
		finding := Finding{Count: 5}
		require.Equal(t, tt.want, Record{Finding: finding, Handling: tt.handling}.StateAt(now), name)
		require.Equal(t, tt.want, Problem{Finding: finding, Handling: tt.handling}.stateAt(now), name)
	}
}

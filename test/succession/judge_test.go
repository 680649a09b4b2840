package succession_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"github.com/signalbox-dev/signalbox/test/succession"
)

func at(second int) time.Time { return time.Unix(int64(1_000_000+second), 0) }

func owner(server string, epoch int64) succession.Owner {
	return succession.Owner{Server: server, Epoch: epoch}
}

// validSuccession has three executions: a takeover, an adoption, a continuation.
func validSuccession() []succession.Execution {
	return []succession.Execution{
		{ID: "d", RunID: "1", Start: at(0), Close: at(9), Status: enums.WORKFLOW_EXECUTION_STATUS_TERMINATED,
			Reason: "taken over", Owners: []succession.Owner{owner("a", 1)}},
		{ID: "d", RunID: "2", Start: at(9), Close: at(20), Status: enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW,
			Owners: []succession.Owner{owner("b", 2), owner("c", 4)}},
		{ID: "d", RunID: "3", Start: at(19), Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING,
			Owners: []succession.Owner{owner("c", 4)}},
		{ID: "other", RunID: "4", Start: at(20), Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING,
			Owners: []succession.Owner{owner("a", 1)}},
	}
}

func TestValidSuccessionHasNoFinding(t *testing.T) {
	t.Parallel()
	require.Empty(t, succession.Wrong(validSuccession()))
	require.Equal(t, 1, succession.Terminated(validSuccession()))
	require.Len(t, succession.Open(validSuccession()), 2)
	require.Len(t, succession.Owners(validSuccession()), 5)
}

func TestEveryViolationIsFound(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		spoil func([]succession.Execution)
		want  string
	}{
		"two open": {func(l []succession.Execution) {
			l[0].Status = enums.WORKFLOW_EXECUTION_STATUS_RUNNING
		}, "is open while"},
		"ended too late": {func(l []succession.Execution) { l[0].Close = at(10) }, "ended 1s after"},
		"epoch fell": {func(l []succession.Execution) {
			l[1].Owners[1].Epoch = 1
		}, "from epoch 2 of b to epoch 1 of c"},
		"epoch of two": {func(l []succession.Execution) {
			l[1].Owners[0].Epoch = 1
		}, "from epoch 1 of a to epoch 1 of b"},
		"ended by itself": {func(l []succession.Execution) {
			l[0].Status = enums.WORKFLOW_EXECUTION_STATUS_FAILED
		}, "ended by itself"},
		"without any reason": {func(l []succession.Execution) { l[0].Reason = "" }, "without a reason"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := validSuccession()
			c.spoil(line)
			require.Contains(t, strings.Join(succession.Wrong(line), "\n"), c.want)
		})
	}
}

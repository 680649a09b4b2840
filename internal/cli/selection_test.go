package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/cli/runcmd"
)

// Each condition on runs has a flag, and each command that selects runs sends all of them.
func TestFlagsCarryEveryCondition(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"status": "failed", "workflow": "shop/order", "version": "1.0.0", "since": "2026-01-30", "until": "2026-01-31",
		"stuck": "no_poller", "error": "execution_missing",
		"ended-since": "2026-02-01", "ended-until": "2026-02-02", "failure-group": "00aa11bb22cc33dd44ee", "trigger": "api",
		"text": "r1", "label": "order=4711",
		"words": "order 4711", "error-text": "refused", "task": "charge", "waiting": "retry", "cause": "PANIC",
		"retrying": "charge", "parent": "p1", "replay-of": "r2", "batch": "b1", "started-by-batch": "b2",
	}
	var flags []string
	for _, name := range runcmd.SelectionFlags() {
		if value := values[name]; value != "" {
			flags = append(flags, "--"+name, value)
		} else {
			flags = append(flags, "--"+name)
		}
	}
	shell, a := sh(t)
	var want *signalboxv1.RunFilter
	fields := want.ProtoReflect().Descriptor().Fields()
	for _, command := range []struct {
		args []string
		sent func() *signalboxv1.RunFilter
	}{
		{[]string{"batch", "start", "--action", "replay", "--dry-run"}, func() *signalboxv1.RunFilter {
			return last[*signalboxv1.StartBatchRequest](t, a).GetFilter()
		}},
		{[]string{"run", "list"}, func() *signalboxv1.RunFilter {
			return last[*signalboxv1.ListRunsRequest](t, a).GetFilter()
		}},
		{[]string{"run", "count"}, func() *signalboxv1.RunFilter {
			return last[*signalboxv1.CountRunsRequest](t, a).GetFilter()
		}},
		{[]string{"run", "export"}, func() *signalboxv1.RunFilter {
			return last[*signalboxv1.ExportRunsRequest](t, a).GetFilter()
		}},
		{[]string{"view", "save", "v"}, func() *signalboxv1.RunFilter {
			return last[*signalboxv1.SaveViewRequest](t, a).GetQuery().GetFilter()
		}},
	} {
		c := shell.run(t, append(command.args, flags...)...)
		require.Zero(t, c.code, "%v: %s", command.args, c.err.String())
		got := command.sent()
		if want == nil {
			want = got
			for i := range fields.Len() {
				require.True(t, want.ProtoReflect().Has(fields.Get(i)), "no flag sets the condition %s", fields.Get(i).Name())
			}
			require.Equal(t, []string{"NO_POLLER"}, want.GetStuck())
		}
		require.True(t, proto.Equal(want, got), "%v: %v", command.args, got)
	}
	line := runcmd.FilterLine(want, "", "")
	for i := range fields.Len() {
		part := proto.CloneOf(want)
		part.ProtoReflect().Clear(fields.Get(i))
		require.NotEqual(t, line, runcmd.FilterLine(part, "", ""), fields.Get(i).Name())
	}
}

package plan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
)

var own = inbox.Owner{Epoch: 5, Holder: "me"}

// situations visits the product of all inputs.
func situations(visit func(previous plan.Previous, seen plan.Observed)) {
	flags := []bool{false, true}
	for _, previous := range []plan.Previous{plan.PreviousUnknown, plan.Resigned, plan.Crashed} {
		for _, open := range flags {
			for _, belongs := range []wire.Belonging{wire.Mine, wire.Foreign, wire.Legacy, wire.OlderScheme, ""} {
				for _, owner := range []string{"me", "other", ""} {
					for epoch := range int64(8) {
						for _, silent := range flags {
							for _, unanswered := range flags {
								visit(previous, plan.Observed{
									Open: open, Belongs: belongs, Owner: owner, Epoch: epoch, Silent: silent, Unanswered: unanswered,
								})
							}
						}
					}
				}
			}
		}
	}
}

func TestDecideForAllInputs(t *testing.T) {
	t.Parallel()
	count := 0
	situations(func(previous plan.Previous, seen plan.Observed) {
		count++
		act := plan.Decide(previous, seen, own)
		about := fmt.Sprintf("%s %+v → %+v", previous, seen, act)
		require.NotEmpty(t, act.Label, about)
		require.NotEmpty(t, act.Reason, about)
		switch act.Kind {
		case plan.ColdStart:
			require.False(t, seen.Open, "started only if none is open: %s", about)
		case plan.TakeOver:
			require.True(t, seen.Open, about)
			if seen.Belongs != wire.Legacy {
				require.Equal(t, wire.Mine, seen.Belongs, "only own dispatchers are terminated: %s", about)
				require.Less(t, seen.Epoch, own.Epoch, "never one with a higher epoch: %s", about)
				interrupted := seen.Epoch != own.Epoch-1
				require.True(t, previous == plan.Crashed || seen.Silent || seen.Unanswered || interrupted,
					"never a healthy one without a reason: %s", about)
			}
		case plan.Adopt:
			require.Equal(t, wire.Mine, seen.Belongs, about)
			require.Equal(t, own.Epoch-1, seen.Epoch, about)
			require.NotEqual(t, plan.Crashed, previous, about)
			require.False(t, seen.Silent || seen.Unanswered, about)
		case plan.Keep:
			require.Equal(t, own.Epoch, seen.Epoch, about)
			require.Equal(t, own.Holder, seen.Owner, about)
		case plan.StepDown:
			require.GreaterOrEqual(t, seen.Epoch, own.Epoch, about)
		case plan.Refuse:
			require.NotContains(t, []wire.Belonging{wire.Mine, wire.Legacy}, seen.Belongs, about)
		default:
			require.Fail(t, "unknown action", about)
		}
		if !seen.Open {
			require.Equal(t, plan.ColdStart, act.Kind, about)
		}
	})
	require.Equal(t, 3*2*5*3*8*2*2, count)
}

func TestDecide(t *testing.T) {
	t.Parallel()
	mine := plan.Observed{Open: true, Belongs: wire.Mine, Owner: "other", Epoch: 4}
	with := func(change func(*plan.Observed)) plan.Observed {
		seen := mine
		change(&seen)
		return seen
	}
	tests := map[string]struct {
		previous plan.Previous
		seen     plan.Observed
		kind     plan.ActKind
		label    string
	}{
		"nothing open, crashed":  {plan.Crashed, plan.Observed{}, plan.ColdStart, "absent"},
		"nothing open, resigned": {plan.Resigned, plan.Observed{}, plan.ColdStart, "absent"},
		"resigned, answering":    {plan.Resigned, mine, plan.Adopt, "resigned"},
		"unknown, answering":     {plan.PreviousUnknown, mine, plan.Adopt, "unowned"},
		"resigned, silent": {plan.Resigned, with(func(s *plan.Observed) {
			s.Silent = true
		}), plan.TakeOver, "silent"},
		"unknown, unanswered": {plan.PreviousUnknown, with(func(s *plan.Observed) {
			s.Unanswered = true
		}), plan.TakeOver, "unanswered"},
		"unknown, neither": {plan.PreviousUnknown, with(func(s *plan.Observed) {
			s.Silent, s.Unanswered = true, true
		}), plan.TakeOver, "unanswered"},
		"crashed, open": {plan.Crashed, mine, plan.TakeOver, "crashed"},
		"an epoch was allocated in between": {plan.Resigned, with(func(s *plan.Observed) {
			s.Epoch = 3
		}), plan.TakeOver, "interrupted"},
		"legacy": {plan.Resigned, with(func(s *plan.Observed) {
			s.Belongs = wire.Legacy
		}), plan.TakeOver, "legacy"},
		"foreign": {plan.Crashed, with(func(s *plan.Observed) {
			s.Belongs = wire.Foreign
		}), plan.Refuse, "foreign"},
		"a higher epoch": {plan.Crashed, with(func(s *plan.Observed) { s.Epoch = 6 }), plan.StepDown, "outrun"},
		"own epoch, another holder": {plan.PreviousUnknown, with(func(s *plan.Observed) {
			s.Epoch = 5
		}), plan.StepDown, "outrun"},
		"already owned": {plan.Crashed, with(func(s *plan.Observed) { s.Epoch, s.Owner = 5, "me" }), plan.Keep, "owned"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			act := plan.Decide(test.previous, test.seen, own)
			require.Equal(t, test.kind, act.Kind)
			require.Equal(t, test.label, act.Label)
		})
	}
}

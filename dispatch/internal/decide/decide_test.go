package decide_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/decide"
)

var own = inbox.Owner{Epoch: 5, Holder: "me"}

// situations is the product of all inputs.
func situations(visit func(previous decide.Previous, seen decide.Seen)) {
	flags := []bool{false, true}
	for _, previous := range []decide.Previous{decide.Unknown, decide.Resigned, decide.Crashed} {
		for _, open := range flags {
			for _, belongs := range []contract.Belonging{contract.Mine, contract.NotMine, contract.Legacy, contract.OlderScheme, ""} {
				for _, owner := range []string{"me", "other", ""} {
					for epoch := range int64(8) {
						for _, silent := range flags {
							for _, unanswered := range flags {
								visit(previous, decide.Seen{
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

func TestEverySituation(t *testing.T) {
	t.Parallel()
	count := 0
	situations(func(previous decide.Previous, seen decide.Seen) {
		count++
		act := decide.What(previous, seen, own)
		about := fmt.Sprintf("%s %+v → %+v", previous, seen, act)
		require.NotEmpty(t, act.Label, about)
		require.NotEmpty(t, act.Reason, about)
		switch act.Kind {
		case decide.ColdStart:
			require.False(t, seen.Open, "started only where nothing is open: %s", about)
		case decide.TakeOver:
			require.True(t, seen.Open, about)
			if seen.Belongs != contract.Legacy {
				require.Equal(t, contract.Mine, seen.Belongs, "only what is ours is terminated: %s", about)
				require.Less(t, seen.Epoch, own.Epoch, "never one with a higher epoch: %s", about)
				interrupted := seen.Epoch != own.Epoch-1
				require.True(t, previous == decide.Crashed || seen.Silent || seen.Unanswered || interrupted, "never a healthy one without need: %s", about)
			}
		case decide.Adopt:
			require.Equal(t, contract.Mine, seen.Belongs, about)
			require.Equal(t, own.Epoch-1, seen.Epoch, about)
			require.NotEqual(t, decide.Crashed, previous, about)
			require.False(t, seen.Silent || seen.Unanswered, about)
		case decide.Keep:
			require.Equal(t, own.Epoch, seen.Epoch, about)
			require.Equal(t, own.Holder, seen.Owner, about)
		case decide.StepDown:
			require.GreaterOrEqual(t, seen.Epoch, own.Epoch, about)
		case decide.Refuse:
			require.NotContains(t, []contract.Belonging{contract.Mine, contract.Legacy}, seen.Belongs, about)
		default:
			require.Fail(t, "an act that is none", about)
		}
		if !seen.Open {
			require.Equal(t, decide.ColdStart, act.Kind, about)
		}
	})
	require.Equal(t, 3*2*5*3*8*2*2, count)
}

func TestTable(t *testing.T) {
	t.Parallel()
	mine := decide.Seen{Open: true, Belongs: contract.Mine, Owner: "other", Epoch: 4}
	with := func(change func(*decide.Seen)) decide.Seen {
		seen := mine
		change(&seen)
		return seen
	}
	tests := map[string]struct {
		previous decide.Previous
		seen     decide.Seen
		kind     decide.Kind
		label    string
	}{
		"nothing open, crashed":          {decide.Crashed, decide.Seen{}, decide.ColdStart, "absent"},
		"nothing open, resigned":         {decide.Resigned, decide.Seen{}, decide.ColdStart, "absent"},
		"resigned, answering":            {decide.Resigned, mine, decide.Adopt, "resigned"},
		"unknown, answering":             {decide.Unknown, mine, decide.Adopt, "unowned"},
		"resigned, silent":               {decide.Resigned, with(func(s *decide.Seen) { s.Silent = true }), decide.TakeOver, "silent"},
		"unknown, unanswered":            {decide.Unknown, with(func(s *decide.Seen) { s.Unanswered = true }), decide.TakeOver, "unanswered"},
		"unknown, neither":               {decide.Unknown, with(func(s *decide.Seen) { s.Silent, s.Unanswered = true, true }), decide.TakeOver, "unanswered"},
		"crashed, open":                  {decide.Crashed, mine, decide.TakeOver, "crashed"},
		"one was given an epoch between": {decide.Resigned, with(func(s *decide.Seen) { s.Epoch = 3 }), decide.TakeOver, "interrupted"},
		"legacy":                         {decide.Resigned, with(func(s *decide.Seen) { s.Belongs = contract.Legacy }), decide.TakeOver, "legacy"},
		"another's":                      {decide.Crashed, with(func(s *decide.Seen) { s.Belongs = contract.NotMine }), decide.Refuse, "foreign"},
		"a higher epoch":                 {decide.Crashed, with(func(s *decide.Seen) { s.Epoch = 6 }), decide.StepDown, "outrun"},
		"my epoch, another's":            {decide.Unknown, with(func(s *decide.Seen) { s.Epoch = 5 }), decide.StepDown, "outrun"},
		"it was me, as is told now":      {decide.Crashed, with(func(s *decide.Seen) { s.Epoch, s.Owner = 5, "me" }), decide.Keep, "owned"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			act := decide.What(test.previous, test.seen, own)
			require.Equal(t, test.kind, act.Kind)
			require.Equal(t, test.label, act.Label)
		})
	}
}

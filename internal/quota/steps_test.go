package quota_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/quota"
)

func TestGive(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		limit   int64
		period  quota.Period
		account quota.Account
		request quota.Request
		steps   int64
		after   quota.Period
		booked  quota.Account
	}{
		{"a share", 1000, quota.Period{}, quota.Account{}, quota.Request{Entered: 7}, 50, quota.Period{Granted: 50},
			quota.Account{Taken: 50, Entered: 7, Total: 50}},
		{"at least one", 3, quota.Period{}, quota.Account{}, quota.Request{}, 1, quota.Period{Granted: 1},
			quota.Account{Taken: 1, Total: 1}},
		{"a hundred at most", 1_000_000, quota.Period{}, quota.Account{}, quota.Request{}, 100, quota.Period{Granted: 100},
			quota.Account{Taken: 100, Total: 100}},
		{"what is left", 1000, quota.Period{Granted: 990}, quota.Account{}, quota.Request{}, 10, quota.Period{Granted: 1000},
			quota.Account{Taken: 10, Total: 10}},
		{"nothing is left", 1000, quota.Period{Granted: 1000}, quota.Account{}, quota.Request{Granted: 5}, 0,
			quota.Period{Granted: 1000}, quota.Account{Total: 5}},
		{"less than nothing", 1000, quota.Period{Granted: 2000}, quota.Account{}, quota.Request{}, 0,
			quota.Period{Granted: 2000}, quota.Account{}},
		{"another block", 1000, quota.Period{Granted: 50}, quota.Account{Taken: 50, Entered: 7, Total: 50},
			quota.Request{Granted: 50, Entered: 57}, 50,
			quota.Period{Granted: 100}, quota.Account{Taken: 100, Entered: 7, Total: 100}},
		{"an answer that was lost", 1000, quota.Period{Granted: 100}, quota.Account{Taken: 100, Entered: 7, Total: 100},
			quota.Request{Granted: 50, Entered: 57}, 50,
			quota.Period{Granted: 100}, quota.Account{Taken: 100, Entered: 7, Total: 100}},
		{"resumed", 1000, quota.Period{Granted: 1000, Extra: 5}, quota.Account{Taken: 9, Total: 9, Resumed: true},
			quota.Request{Granted: 9}, 1000,
			quota.Period{Granted: 1000, Extra: 1005}, quota.Account{Taken: 9, Total: 1009}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, a := tt.period, tt.account
			require.Equal(t, tt.steps, quota.Give(tt.limit, &p, &a, tt.request))
			require.Equal(t, tt.after, p)
			require.Equal(t, tt.booked, a)
		})
	}
}

func TestUnused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ taken, before, entered, unused int64 }{
		{50, 0, 50, 0}, {50, 0, 20, 30}, {50, 100, 120, 30}, {50, 100, 100, 50}, {50, 0, 90, 0}, {0, 0, 9, 0},
		{50, 100, 90, 50},
	} {
		require.Equal(t, tt.unused, quota.Unused(quota.Account{Taken: tt.taken, Entered: tt.before}, tt.entered), "%+v", tt)
	}
}

// The test simulates a period with runs that start, request steps, lose answers, enter steps and end in any order. The
// steps that they enter, except those of resumed runs, never exceed the limit, and the steps that they did not enter
// are returned.
func TestLimitIsNeverExceeded(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			limit := 1 + random.Int64N(500)
			type open struct {
				account                quota.Account
				granted, left, entered int64
			}
			var p quota.Period
			runs := []*open{{}, {}, {}}
			entered := int64(0)
			for range 2000 {
				at := random.IntN(len(runs))
				r := runs[at]
				switch random.IntN(4) {
				case 0:
					steps := quota.Give(limit, &p, &r.account, quota.Request{Granted: r.granted, Entered: r.entered})
					if r.left == 0 && random.IntN(3) > 0 { // otherwise the answer is lost
						r.granted += steps
						r.left = steps
					}
				case 1, 2:
					n := random.Int64N(r.left + 1)
					r.left, r.entered, entered = r.left-n, r.entered+n, entered+n
				case 3:
					if random.IntN(10) == 0 {
						p.Granted -= quota.Unused(r.account, r.entered)
						runs[at] = &open{entered: 0}
					}
				}
				require.LessOrEqual(t, p.Granted, limit)
				require.LessOrEqual(t, entered, p.Granted)
				require.Zero(t, p.Extra)
			}
			for _, r := range runs {
				p.Granted -= quota.Unused(r.account, r.entered)
			}
			require.Equal(t, entered, p.Granted)
		})
	}
}

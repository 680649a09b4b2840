package embedded_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/service/worker/scheduler"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/signalbox-dev/signalbox/dsl/firing"
)

// randomCron returns a cron expression of numbers, ranges, lists and steps.
func randomCron(r *rand.Rand) string {
	field := func(low, high int) string {
		n := func() int { return low + r.IntN(high-low+1) }
		a, b := n(), n()
		switch r.IntN(7) {
		case 0:
			return fmt.Sprint(a)
		case 1:
			return fmt.Sprintf("%d-%d", min(a, b), max(a, b))
		case 2:
			return fmt.Sprintf("%d,%d,%d", a, b, n())
		case 3:
			return fmt.Sprintf("*/%d", 1+r.IntN(high))
		case 4:
			return fmt.Sprintf("%d/%d", a, 1+r.IntN(high))
		case 5:
			return fmt.Sprintf("%d-%d/%d,%d", min(a, b), max(a, b), 1+r.IntN(4), n())
		default:
			return "*"
		}
	}
	days, weekdays := field(1, 31), "*"
	if r.IntN(2) == 0 {
		days, weekdays = "*", field(0, 7)
	}
	return fmt.Sprintf("%s %s %s %s %s", field(0, 59), field(0, 23), days, field(1, 12), weekdays)
}

// Package firing computes the same times as Temporal's scheduler, across many changes of the clocks, except for those
// that do not match the expression.
func TestFiringTimesAreThoseOfTemporal(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	zones := []string{"", "UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "Australia/Lord_Howe",
		"Asia/Kolkata", "Asia/Kathmandu", "Africa/Casablanca", "America/Sao_Paulo", "Pacific/Apia", "Pacific/Chatham",
		"Antarctica/Troll", "Asia/Tehran", "Europe/Dublin"}
	expressions := []string{"@hourly", "@daily", "@weekly", "@monthly", "@yearly", "0 0 29 2 *", "30 2 * * *", "30 1 * * *",
		"*/15 1-3 * * *", "0 0 * * sun", "59 23 31 * *", "0 12 * jan,JUL mon-fri", "0 0 * * 5-7", "0 6 * * 1-7",
		"* * * * *"}
	for range 300 {
		expressions = append(expressions, randomCron(r))
	}
	unlimited := dynamicconfig.GetIntPropertyFn(0)
	builder := scheduler.NewSpecBuilder(unlimited, unlimited)
	compared := 0
	compare := func(spec firing.Spec, theirs *schedulepb.ScheduleSpec, from time.Time) {
		times, err := firing.New(spec)
		if err != nil && spec.Cron != "" {
			return // a day that no month has
		}
		require.NoError(t, err)
		compiled, err := builder.NewCompiledSpec(theirs)
		require.NoError(t, err, spec)
		for at := from; ; compared++ {
			want, err := compiled.GetNextTime("", at)
			for err == nil && !want.Nominal.IsZero() && !times.Matches(want.Nominal) {
				want, err = compiled.GetNextTime("", want.Nominal)
			}
			require.NoError(t, err)
			got := times.Next(at)
			require.True(t, got.Equal(want.Nominal), "%+v after %v: Temporal fires at %v, not at %v", spec, at, want.Nominal,
				got)
			if at = got; got.IsZero() || compared%60 == 59 {
				compared++
				break
			}
		}
	}
	days := []time.Time{ // each some hours before clocks change somewhere
		time.Date(2026, 3, 28, 20, 7, 31, 0, time.UTC), time.Date(2026, 10, 24, 20, 0, 0, 0, time.UTC),
		time.Date(2026, 3, 8, 3, 59, 59, 0, time.UTC), time.Date(2026, 11, 1, 3, 0, 1, 0, time.UTC),
		time.Date(2026, 4, 4, 13, 0, 0, 0, time.UTC), time.Date(2026, 10, 3, 13, 0, 0, 0, time.UTC),
		time.Date(2011, 12, 29, 20, 0, 0, 0, time.UTC), time.Date(2018, 11, 3, 20, 0, 0, 0, time.UTC),
		time.Date(2026, 2, 14, 20, 0, 0, 0, time.UTC), time.Date(2099, 12, 30, 0, 0, 0, 0, time.UTC)}
	for _, cron := range expressions {
		for _, zone := range zones {
			from := days[r.IntN(len(days))]
			theirs := &schedulepb.ScheduleSpec{CronString: []string{firing.Lists(cron)}, TimezoneName: zone}
			compare(firing.Spec{Cron: cron, Zone: zone}, theirs, from)
			start := from.Add(time.Duration(r.IntN(1_000_000)) * time.Second)
			theirs.StartTime = timestamppb.New(start)
			compare(firing.Spec{Cron: cron, Zone: zone, Start: start}, theirs, from)
		}
	}
	for range 500 {
		every := time.Duration(1+r.IntN(100_000)) * time.Second
		spec := firing.Spec{Every: every, Since: days[r.IntN(len(days))].Add(time.Duration(r.Int64N(1e15)))}
		compare(spec, &schedulepb.ScheduleSpec{Interval: []*schedulepb.IntervalSpec{
			{Interval: durationpb.New(every), Phase: durationpb.New(spec.Phase())}}}, spec.Since)
	}
	t.Logf("%d times compared", compared)
}

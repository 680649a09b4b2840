package quota_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/quota"
)

// kept stores the last quota that was set.
type kept struct {
	quota.Store

	quota quota.Quota
	entry audit.Entry
}

func (k *kept) SetQuota(_ context.Context, _ string, q quota.Quota, e audit.Entry) (quota.Usage, error) {
	k.quota, k.entry = q, e
	return quota.Usage{Quota: q}, nil
}

func TestSet(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		quota quota.Quota
		wrong []string
	}{
		{"no limit", quota.Quota{}, nil},
		{"runs", quota.Quota{ConcurrentRuns: 1}, nil},
		{"steps", quota.Quota{Steps: 1, Period: time.Second}, nil},
		{"all it can be", quota.Quota{ConcurrentRuns: quota.MostRuns, Steps: quota.MostSteps, Period: quota.LongestPeriod},
			nil},
		{"negative", quota.Quota{ConcurrentRuns: -1, Steps: -1, Period: -time.Second},
			[]string{"concurrentRuns", "steps", "periodSeconds"}},
		{"too much", quota.Quota{
			ConcurrentRuns: quota.MostRuns + 1, Steps: quota.MostSteps + 1, Period: quota.LongestPeriod + time.Second},
			[]string{"concurrentRuns", "steps", "periodSeconds"}},
		{"no period", quota.Quota{Steps: 1}, []string{"periodSeconds"}},
		{"nothing in the period", quota.Quota{Period: time.Hour}, []string{"periodSeconds"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var admitted []string
			store := &kept{}
			now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			s := quota.NewService(store, quota.Options{
				Now: func() time.Time { return now }, Admit: func(project string) { admitted = append(admitted, project) },
			})
			ctx := auth.WithActor(t.Context(), auth.Actor{Kind: auth.KindLocal, Name: "ada"})
			u, err := s.Set(ctx, "shop", tt.quota)
			if len(tt.wrong) > 0 {
				f, ok := apperror.From(err)
				require.True(t, ok, "%v", err)
				require.Equal(t, []any{apperror.Invalid, apperror.InvalidArgument}, []any{f.Class, f.Reason})
				var fields []string
				for _, field := range f.Fields {
					fields = append(fields, field.Path[len("quota/"):])
					require.Contains(t, f.Message, field.Path+" "+field.Message)
				}
				require.Equal(t, tt.wrong, fields)
				require.Equal(t, kept{}, *store)
				require.Empty(t, admitted)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.quota, u.Quota)
			require.Equal(t, tt.quota, store.quota)
			require.Equal(t, []any{audit.QuotaSet, "shop", "shop", "ada", now},
				[]any{store.entry.Action, store.entry.Project, store.entry.Subject, store.entry.Actor.Name, store.entry.Time})
			require.Equal(t, []string{"shop"}, admitted)
		})
	}
}

package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/database"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

const (
	// compressed is how long the time between the oldest backup and the loss takes where it is simulated.
	compressed = 12 * time.Second
	// realTimeFrom is how many minutes a run must have so that some schedules wait for the real age of their backups.
	realTimeFrom = 6 * time.Minute
	// oldest is the greatest age of a backup.
	oldest = 60
)

// restorePlan is a schedule with a restore: which parts are restored, and of which moments before everything is killed.
type restorePlan struct {
	seed     uint64
	store    string        // sqlite or postgres
	database time.Duration // the age of the backup of the database; 0: it is not restored
	temporal time.Duration // that of Temporal
	apart    bool          // the large values are in a folder, which is not restored
	late     bool          // a workflow is published after the backup of the database
}

func (p restorePlan) String() string {
	text := p.store
	if p.database > 0 {
		text += fmt.Sprintf(", database of %s ago", p.database)
	}
	if p.temporal > 0 {
		text += fmt.Sprintf(", Temporal of %s ago", p.temporal)
	}
	if p.apart {
		text += ", large values apart"
	}
	if p.late {
		text += ", a workflow published after the backup"
	}
	return text
}

// oldest is the age of the older backup.
func (p restorePlan) oldest() time.Duration { return max(p.database, p.temporal) }

// planRestore generates a schedule. Eight consecutive seeds have each kind of restore on each database.
func planRestore(seed uint64) restorePlan {
	random := rand.New(rand.NewPCG(seed, 1))
	age := func() time.Duration { return time.Duration(1+random.IntN(oldest)) * time.Minute }
	p := restorePlan{seed: seed, store: []string{"sqlite", "postgres"}[seed%2]}
	kind := seed / 2 % 4
	if kind != 1 {
		p.database = age()
		p.late = random.IntN(3) == 0
	}
	if kind == 1 || kind == 2 {
		p.temporal = age()
	}
	p.apart = kind == 3 || kind == 2 && random.IntN(2) == 0
	return p
}

func TestRestorePlansAreFunctionsOfTheirSeed(t *testing.T) {
	t.Parallel()
	kinds := map[string]bool{}
	for seed := range uint64(8) {
		p := planRestore(seed)
		require.Equal(t, p, planRestore(seed))
		require.NotZero(t, p.oldest())
		require.LessOrEqual(t, p.oldest(), oldest*time.Minute)
		kinds[fmt.Sprint(p.store, p.database > 0, p.temporal > 0, p.apart && p.temporal == 0)] = true
	}
	require.Len(t, kinds, 8)
}

// shortSeeds are an older SQLite and an older Temporal beside Postgres. They are fixed, because a finding of a new seed
// may be one of the oracle: `make chaos` plays new ones.
func shortSeeds() []uint64 { return []uint64{208, 211} }

// Backups of the database, of Temporal or of both, of moments up to an hour before, are restored after everything was
// killed under load.
func TestNoRunIsLostByRestores(t *testing.T) {
	t.Parallel()
	seed := promise.Seed(t)
	minutes, long := minutes(t)
	if !long {
		for _, known := range shortSeeds() {
			restoreOnce(t, planRestore(known))
		}
		return
	}
	end := time.Now().Add(minutes)
	schedules := uint64(0)
	for time.Now().Before(end) {
		ok := t.Run(fmt.Sprintf("from seed %d", seed+schedules), func(t *testing.T) {
			for n := schedules; n < schedules+sideBySide; n++ {
				restoreOnce(t, planRestore(seed+n))
			}
		})
		require.True(t, ok, "a schedule from seed %d on failed", seed+schedules)
		schedules += sideBySide
	}
	recordRestores(t, seed, int(schedules), fmt.Sprintf("%d schedules without a finding in %s", schedules, minutes))
}

// restoreOnce plays a schedule as a subtest, with the age of its backups simulated.
func restoreOnce(t *testing.T, p restorePlan) {
	t.Helper()
	t.Run(fmt.Sprintf("%s with seed %d", p.store, p.seed), func(t *testing.T) {
		t.Parallel()
		t.Log(playRestore(t, p, compressed))
	})
}

// The same with backups of the age that they have: nothing is simulated.
func TestNoRunIsLostByRestoresInRealTime(t *testing.T) {
	t.Parallel()
	minutes, _ := minutes(t)
	if minutes < realTimeFrom {
		t.Skipf("`make chaos` runs this one, with CHAOS_MINUTES from %.0f on; otherwise the age of backups is simulated",
			realTimeFrom.Minutes())
	}
	seed := promise.Seed(t)
	end := time.Now().Add(minutes)
	schedules := 0
	for ; schedules == 0 || time.Until(end) > realTimeFrom; schedules++ {
		p := planRestore(seed + uint64(schedules))
		// A backup is at most half as old as the time that is left, so that several ages fit.
		p.database, p.temporal = shorten(p.database, p.oldest(), time.Until(end)/2),
			shorten(p.temporal, p.oldest(), time.Until(end)/2)
		ok := t.Run(fmt.Sprintf("%s with seed %d", p.store, p.seed), func(t *testing.T) {
			t.Log(playRestore(t, p, p.oldest()))
		})
		require.True(t, ok, "the schedule of seed %d failed", p.seed)
	}
	recordRestores(t, seed, schedules, fmt.Sprintf("%d schedules in real time without a finding", schedules))
}

// shorten scales an age so that the oldest one is not over the limit, and this one not under a minute, from which a
// restore is detected.
func shorten(age, oldest, limit time.Duration) time.Duration {
	if age == 0 || oldest <= limit {
		return age
	}
	return max(time.Duration(float64(age)*float64(limit)/float64(oldest)), time.Minute+10*time.Second).Round(time.Second)
}

func recordRestores(t *testing.T, seed uint64, schedules int, figure string) {
	t.Helper()
	promise.Record(t, promise.Figure{Promise: "P-R1", Trials: schedules, Seed: seed, Figure: figure,
		What: "restores of the database, of Temporal and of both from different moments: every run that either has is " +
			"shown, no repeated start starts twice"})
}

// restoreStore makes the database of a schedule, and the Redis that goes with it; the URL is empty where there is none.
func restoreStore(t *testing.T, p restorePlan) (platform.Store, *database.Redis) {
	t.Helper()
	s := store(t, p.store)
	if !database.HasBackup(s.Driver) {
		t.Skip("pg_dump is missing; `make setup` installs Postgres")
	}
	if s.Driver != "postgres" {
		return s, nil
	}
	return s, database.StartRedis(t, t.Skip)
}

// lines joins findings.
func lines(findings []string) string { return "\n  " + strings.Join(findings, "\n  ") }

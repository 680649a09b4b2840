package engine

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestChangesOfServedProjects(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, tt := range map[string]struct {
		now          *projectService // nil: it is not served
		listed, owns bool
		begin, cease bool
		then         *projectService
	}{
		"new or woken":                 {listed: true, begin: true},
		"served":                       {now: &projectService{}, listed: true, then: &projectService{}},
		"served, its dispatcher owned": {now: &projectService{}, listed: true, owns: true, then: &projectService{}},
		"parked":                       {now: &projectService{}, cease: true, then: &projectService{unlisted: now, leaving: true}},
		"parked, its dispatcher owned: the others leave first": {now: &projectService{}, owns: true,
			then: &projectService{unlisted: now}},
		"parked and owned for long": {now: &projectService{unlisted: ago(ownerStays)}, owns: true, cease: true,
			then: &projectService{unlisted: ago(ownerStays), leaving: true}},
		"woken before its owner has left": {now: &projectService{unlisted: ago(time.Second)}, listed: true, owns: true,
			then: &projectService{}},
		"being left":                    {now: &projectService{leaving: true}, then: &projectService{leaving: true}},
		"woken while it is being left":  {now: &projectService{leaving: true}, listed: true, then: &projectService{leaving: true}},
		"its dispatcher was not ended":  {now: &projectService{unlisted: now.Add(retireAgain)}, owns: true, then: &projectService{unlisted: now.Add(retireAgain)}},
		"neither parked nor to be seen": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			serving := map[string]*projectService{}
			if tt.now != nil {
				serving["shop"] = tt.now
			}
			var listed []string
			if tt.listed {
				listed = []string{"shop"}
			}
			begin, cease := changes(serving, listed, func(string) bool { return tt.owns }, now)
			require.Equal(t, []bool{tt.begin, tt.cease}, []bool{len(begin) == 1, len(cease) == 1})
			require.Equal(t, tt.then, serving["shop"])
		})
	}
}

// Two processes serve what is listed and nothing else, whatever the order of parking, waking and the end of leaving
// is; and while another process serves a project, the owner of its dispatcher does not leave before ownerStays.
func TestChangesConverge(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c"}
		now, serving, owner := time.Unix(1_000_000, 0), map[string]*projectService{}, map[string]bool{}
		step := func(listed []string) {
			begin, cease := changes(serving, listed, func(name string) bool { return owner[name] }, now)
			for _, name := range begin {
				if serving[name] != nil || !slices.Contains(listed, name) {
					t.Fatalf("%s begins, and is served already or parked", name)
				}
				serving[name] = &projectService{}
				owner[name] = rapid.Bool().Draw(t, "owns")
			}
			for _, name := range cease {
				if slices.Contains(listed, name) || owner[name] && now.Sub(serving[name].unlisted) < ownerStays {
					t.Fatalf("%s is left, and is to be served or was parked a moment ago", name)
				}
			}
			now = now.Add(refreshEvery)
		}
		left := func() {
			maps.DeleteFunc(serving, func(_ string, s *projectService) bool { return s.leaving })
		}
		var listed []string
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			listed = rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(t, "listed")
			if rapid.Bool().Draw(t, "left") {
				left()
			}
			step(listed)
		}
		for range 2 + ownerStays/refreshEvery {
			left()
			step(listed)
		}
		left()
		slices.Sort(listed)
		if got := slices.Sorted(maps.Keys(serving)); !slices.Equal(got, listed) {
			t.Fatalf("%v are served, not %v", got, listed)
		}
	})
}

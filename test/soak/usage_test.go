package soak_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/counter"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// growth is what the last quarter of samples may be more than the second one: memory returns to the system late.
const growth = 1.25

// usage samples what processes use.
type usage struct {
	servers  []*platform.Server
	temporal *platform.Process
	samples  map[string][]float64 // by what is used
	stuck    float64              // the most runs that were stuck at a time
}

func newUsage(servers []*platform.Server, temporal *platform.Process) *usage {
	return &usage{servers: servers, temporal: temporal, samples: map[string][]float64{}}
}

// sample takes samples until ctx ends.
func (u *usage) sample(ctx context.Context, t *testing.T) {
	t.Helper()
	every(ctx, sampleEvery, func() {
		u.add("MB of Temporal", u.temporal.Memory(t))
		for i, s := range u.servers {
			_, page, err := s.Get(t.Context(), "/metrics")
			if !assert.NoError(t, err) {
				return
			}
			u.add(fmt.Sprintf("MB of server %d", i), s.Memory(t))
			u.add(fmt.Sprintf("series of server %d", i), float64(strings.Count(page, "\n")))
			for what, metric := range map[string]string{
				"goroutines": counter.Goroutines, "connections": "db_client_connections"} {
				n, _, err := counter.Sum(page, metric)
				assert.NoError(t, err)
				u.add(fmt.Sprintf("%s of server %d", what, i), n)
			}
			stuck, _, err := counter.Sum(page, "signalbox_runs_stuck")
			assert.NoError(t, err)
			u.stuck = max(u.stuck, stuck)
		}
	})
}

func (u *usage) add(what string, n float64) { u.samples[what] = append(u.samples[what], n) }

// quarters returns the medians of the second and the last quarter of samples: in the first one, caches and pools fill.
func (u *usage) quarters(what string) (early, late float64) {
	all := u.samples[what]
	n := len(all)
	return median(all[n/4 : max(n/2, n/4+1)]), median(all[n-max(n/4, 1):])
}

func median(values []float64) float64 { return slices.Sorted(slices.Values(values))[len(values)/2] }

func (u *usage) names() []string {
	var names []string
	for what := range u.samples {
		names = append(names, what)
	}
	slices.Sort(names)
	return names
}

func (u *usage) String() string {
	var parts []string
	for _, what := range u.names() {
		early, late := u.quarters(what)
		parts = append(parts, fmt.Sprintf("%s %.0f, %.0f", what, early, late))
	}
	return strings.Join(parts, "; ")
}

// requireFlat fails the test if something has grown.
func (u *usage) requireFlat(t *testing.T) {
	t.Helper()
	const least = 20 // of any unit: fewer goroutines, connections or megabytes are noise
	for _, what := range u.names() {
		early, late := u.quarters(what)
		assert.LessOrEqual(t, late, max(early*growth, early+least), "%s have grown", what)
	}
}

// lateness returns how late the timers of all servers were.
func lateness(t *testing.T, servers []*platform.Server) histogram {
	t.Helper()
	const metric = "signalbox_timer_lateness_seconds"
	var h histogram
	for _, s := range servers {
		_, page, err := s.Get(t.Context(), "/metrics")
		require.NoError(t, err)
		bounds, counts, err := counter.Buckets(page, metric)
		require.NoError(t, err)
		if h.bounds == nil {
			h.bounds, h.counts = bounds, make([]int, len(bounds))
		}
		for i := range counts {
			h.counts[i] += int(counts[i])
		}
		total, _, err := counter.Sum(page, metric+"_count")
		require.NoError(t, err)
		h.total += int(total)
	}
	return h
}

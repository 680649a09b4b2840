//go:build race

package engine_test

// underRace reports whether the race detector is active. Computing then takes ten times as long, and a repair with much
// compute exceeds its time limit.
const underRace = true

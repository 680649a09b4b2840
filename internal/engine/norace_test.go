//go:build !race

package engine_test

// underRace reports whether the race detector is active.
const underRace = false

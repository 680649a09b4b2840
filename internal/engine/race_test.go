//go:build race

package engine_test

// underRace tells that computing takes ten times as long: a repair of much computing is then over its time.
const underRace = true

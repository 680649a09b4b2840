//go:build !race

package engine_test

// underRace tells that computing takes as long as it does in production.
const underRace = false

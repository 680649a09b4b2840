package promise

import (
	"hash/fnv"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// Databases returns the kinds of database that a test runs with: both at full length, otherwise one of them by the name
// of the test, so that half of the tests run with each. Without Postgres, all run with SQLite.
func Databases(test string) []string {
	const sqlite, postgres = "sqlite", "postgres"
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(test)) // it never fails
	switch {
	case Full():
		return []string{sqlite, postgres}
	case hash.Sum32()%2 == 0 || !platform.HasPostgres():
		return []string{sqlite}
	default:
		return []string{postgres}
	}
}

package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// released has the digests of the SQL that each database gets. A new migration needs a row; a row never changes after
// its release, because databases that have applied the migration would differ from new ones.
func released() []struct{ file, sqlite, postgres string } {
	return []struct{ file, sqlite, postgres string }{
		{"0001_baseline.sql", "073caa523b41", "df824dd0d42f"},
		{"0002_generations.sql", "b497fa78758f", "b497fa78758f"},
		{"0003_runners.sql", "80d5355189d0", "80d5355189d0"},
		{"0004_resources.sql", "9aa405420439", "e1f14b791d09"},
		{"0005_retries.sql", "178a5977bcd2", "178a5977bcd2"},
		{"0006_logs.sql", "422936a77a58", "b5fe0e24c351"},
		{"0007_images.sql", "d4132b10dc44", "d4132b10dc44"},
		{"0008_program_limits.sql", "683af476332a", "683af476332a"},
		{"0009_terms.sql", "2938901d59e3", "ec726c6b24a7"},
		{"0010_parked.sql", "e810b4f8324d", "e810b4f8324d"},
		{"0011_schedules.sql", "174cd3f79c52", "174cd3f79c52"},
	}
}

func TestReleasedMigrationsAreUnchanged(t *testing.T) {
	t.Parallel()
	folder, err := fs.Sub(releases, "migrations")
	require.NoError(t, err)
	sqlite, err := render(folder, sqldb.SQLite)
	require.NoError(t, err)
	postgres, err := render(folder, sqldb.Postgres)
	require.NoError(t, err)

	require.Len(t, released(), len(sqlite))
	for _, want := range released() {
		require.Contains(t, sqlite, want.file)
		require.Equal(t, want.sqlite, digest(string(sqlite[want.file])), "%s for SQLite", want.file)
		require.Equal(t, want.postgres, digest(string(postgres[want.file])), "%s for Postgres", want.file)
	}
}

// digest returns a hash of a migration's statements. Comments and white space may change.
func digest(text string) string {
	var statements strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "--") && !strings.Contains(line, "+goose") {
			continue
		}
		statements.WriteString(strings.Join(strings.Fields(line), ""))
	}
	sum := sha256.Sum256([]byte(statements.String()))
	return hex.EncodeToString(sum[:6])
}

package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/store/sqldb"
)

// released has the digests of the SQL that each database gets. A new migration needs a row; a row never changes after its release,
// because databases that have applied the migration would differ from new ones.
func released() []struct{ file, sqlite, postgres string } {
	return []struct{ file, sqlite, postgres string }{
		{"0001_definitions.sql", "7a1ab07d2f76", "fb8e041f82e2"},
		{"0002_runs.sql", "0874e71fc1f4", "18b33ce2c0e0"},
		{"0003_audit.sql", "cb9428f3b2af", "c666c7b90dc0"},
		{"0004_queue_and_workers.sql", "4510a62a595b", "fc8b433b6ed4"},
		{"0005_reconcile.sql", "6e51fda2d850", "6e51fda2d850"},
		{"0006_home.sql", "8d1d14418b18", "7171be4e1aa4"},
		{"0007_events.sql", "0a31f9513282", "2a047b7c7d34"},
		{"0008_links.sql", "f7bac80f0d75", "3b9e660fc596"},
		{"0009_stuck.sql", "1c9419c1e2c1", "1152897b15dc"},
		{"0010_batches.sql", "b262cea5d21f", "34057bd1a9c4"},
		{"0011_tokens.sql", "769c4a8b08b4", "e582242acf11"},
		{"0012_quotas.sql", "d10858f0a520", "451a59b252c4"},
		{"0013_awaited.sql", "b91c6fd6cbce", "2f63ffbf4d4e"},
		{"0014_originals.sql", "09ec6f3208ae", "9f8e9e71f12f"},
		{"0015_legacy.sql", "9e216f7cc8d9", "084db2387350"},
		{"0016_retention.sql", "6ed992a8fef1", "6ed992a8fef1"},
		{"0017_run_deliveries.sql", "53bebd80154d", "53bebd80154d"},
		{"0018_sealed_events.sql", "49641ad16871", "6be80cb4fa82"},
		{"0019_lists.sql", "f1ab03a4c463", "56409279808d"},
		{"0020_legacy_sources.sql", "c8c6a90a1ed9", "9f66141e0fb6"},
		{"0021_asked.sql", "cb445e12203a", "cb445e12203a"},
		{"0022_project_settings.sql", "f15315b58b48", "f15315b58b48"},
		{"0023_summaries.sql", "9b2a14d9e0e6", "d01cbcc21724"},
		{"0024_poison.sql", "b6d6d8791948", "0cc4ad9c7f54"},
		{"0025_request_digest.sql", "de4fb0fec64f", "de4fb0fec64f"},
		{"0026_payloads.sql", "2bc693a3cc8d", "780bd617e697"},
		{"0027_repairs.sql", "f33b6210a977", "58e2ff2486f5"},
		{"0028_step_waits.sql", "f668258b661b", "f668258b661b"},
		{"0029_sessions.sql", "afbeae417128", "e8ac567f25f3"},
		{"0032_problems.sql", "8531c36d7cd9", "821dd461d165"},
		{"0033_failed_steps.sql", "8ef2562d6f14", "8ef2562d6f14"},
		{"0034_views.sql", "9012926ea045", "a09e6627707d"},
		{"0035_outages.sql", "3ee759bb0b83", "a36eca190b1c"},
		{"0036_run_labels.sql", "4f1d8aff05c4", "7cd5176428d7"},
		{"0037_maintenance.sql", "62ab8770f928", "62ab8770f928"},
		{"0038_webhooks.sql", "37f534c64492", "e8841a5d4da9"},
		{"0039_outbox.sql", "515577d2d423", "d7300b5b931d"},
		{"0040_event_traces.sql", "02a9392530d9", "02a9392530d9"},
		{"0041_listener_index.sql", "450c1d452910", "17e18510b936"},
		{"0042_earlier_events.sql", "4496139a9eb3", "b0a8bc804f08"},
		{"0044_event_nanoseconds.sql", "0e15a415d92a", "0e15a415d92a"},
		{"0045_batch_outcomes.sql", "953317fc1520", "3b8e01b19163"},
		{"0046_busy_workers.sql", "a44ab206d000", "a44ab206d000"},
		{"0047_left_runs.sql", "1de174e2b44d", "1de174e2b44d"},
		{"0048_shortened_values.sql", "8d22863ff783", "8d22863ff783"},
		{"0049_searched_executions.sql", "2dfade7e4c0c", "2dfade7e4c0c"},
		{"0050_restores.sql", "efd37bc26e02", "efd37bc26e02"},
		{"0052_servers.sql", "6775f94a5067", "e9217c162e55"},
		{"0053_foreign_runs.sql", "9020b9e640a0", "9020b9e640a0"},
		{"0054_sealing_keys.sql", "61ab08678db8", "9d4eaaae1638"},
		{"0055_hidden.sql", "b4f57a44c352", "b4f57a44c352"},
		{"0056_token_names.sql", "eb63e455de74", "eb63e455de74"},
	}
}

func TestReleasedMigrationsAreUnchanged(t *testing.T) {
	t.Parallel()
	sqlite, err := render(sqldb.SQLite)
	require.NoError(t, err)
	postgres, err := render(sqldb.Postgres)
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

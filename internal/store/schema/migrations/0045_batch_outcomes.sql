-- +goose Up
-- What became of the runs that a batch started: outcome is empty while such a run is open, and outcomes has the counts of the others, as
-- JSON. runs_ended_at is when the last of them had ended; a loop computes all three, also for batches of older releases.
ALTER TABLE batch_items ADD COLUMN outcome {{.Key}} NOT NULL DEFAULT '';
ALTER TABLE batches ADD COLUMN outcomes TEXT NOT NULL DEFAULT '{}';
ALTER TABLE batches ADD COLUMN runs_ended_at BIGINT;
CREATE INDEX batches_runs_open ON batches (id) WHERE action = 'replay' AND runs_ended_at IS NULL;
CREATE INDEX batch_items_open ON batch_items (batch, number) WHERE new_run_id <> '' AND outcome = '';
CREATE INDEX batch_items_started ON batch_items (batch, new_run_id) WHERE new_run_id <> '';

-- The key of a failure group has 20 digits and does not contain the version. A loop computes it for runs with a key of an older release,
-- or without one.
CREATE INDEX runs_other_group ON runs (ended_at, id)
    WHERE status IN ('failed', 'timed_out') AND length(failure_group) <> 20 AND trigger_kind <> 'import';
DROP INDEX runs_ungrouped;
-- The failures of a project with their versions.
CREATE INDEX runs_failed_versions ON runs (project, ended_at, failure_group, id, version) WHERE failure_group <> '';
DROP INDEX runs_failures;

INSERT INTO schema_compat (version, oldest) VALUES (45, 7);

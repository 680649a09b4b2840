-- +goose Up
-- What was open is read over and over, also where a million runs have ended.
CREATE INDEX runs_open ON runs (id) WHERE status IN ('queued', 'running', 'waiting');

-- Executions that a run left behind when it was reset in Temporal, separated by spaces: what they still have to say
-- no longer counts.
ALTER TABLE runs ADD COLUMN left_executions TEXT NOT NULL DEFAULT '';

INSERT INTO schema_compat (version, oldest) VALUES (5, 3);

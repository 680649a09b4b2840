-- +goose Up
-- The open executions in Temporal that have no row and cannot be adopted, as JSON, as the last comparison found them; NULL before the first.
ALTER TABLE runs_home ADD COLUMN foreign_runs TEXT;

INSERT INTO schema_compat (version, oldest) VALUES (53, 7);

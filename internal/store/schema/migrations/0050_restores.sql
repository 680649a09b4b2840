-- +goose Up
-- The time of the last comparison of the runs with Temporal: the database was in use then. NULL before the first one.
ALTER TABLE runs_home ADD COLUMN compared_at BIGINT;
-- When a comparison found that the database was restored from a backup, and compared_at of the backup; NULL if none has.
ALTER TABLE runs_home ADD COLUMN restored_at BIGINT;
ALTER TABLE runs_home ADD COLUMN restored_to BIGINT;

INSERT INTO schema_compat (version, oldest) VALUES (50, 7);

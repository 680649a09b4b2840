-- +goose Up
-- Executions in Temporal that ended before this time were searched for ones without a row; NULL before the first search.
ALTER TABLE runs_home ADD COLUMN searched_until BIGINT;

INSERT INTO schema_compat (version, oldest) VALUES (49, 7);

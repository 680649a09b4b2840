-- +goose Up
-- The step whose error ended a run is searched among those that failed.
CREATE INDEX steps_failed ON steps (run_id, number) WHERE status = 'failed';

INSERT INTO schema_compat (version, oldest) VALUES (33, 7);

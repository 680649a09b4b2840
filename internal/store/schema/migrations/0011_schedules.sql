-- +goose Up
-- What operators have set of the schedule of a workflow, beside its document, as JSON; NULL: nothing.
ALTER TABLE workflows ADD COLUMN schedule TEXT;
-- The newest time at which the schedule was due and did not fire; NULL: none.
ALTER TABLE triggers ADD COLUMN missed_at BIGINT;
CREATE INDEX triggers_missed ON triggers (project, workflow) WHERE missed_at IS NOT NULL;

INSERT INTO schema_compat (version, oldest) VALUES (11, 1);

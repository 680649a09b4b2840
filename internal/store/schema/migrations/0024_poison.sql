-- +goose Up
-- Why workflow tasks fail, in a word. A failure also has the worker's build, another build that failed in the same way, and when the
-- first one in a row did.
ALTER TABLE task_failures ADD COLUMN cause {{.Key}} NOT NULL DEFAULT '';
ALTER TABLE task_failures ADD COLUMN build {{.Key}} NOT NULL DEFAULT '';
ALTER TABLE task_failures ADD COLUMN other_build {{.Key}} NOT NULL DEFAULT '';
ALTER TABLE task_failures ADD COLUMN since BIGINT;
ALTER TABLE run_verdicts ADD COLUMN cause {{.Key}} NOT NULL DEFAULT '';

-- Runs that the platform ended because they were poison, or is about to: an hour of them is the budget of their project.
CREATE TABLE poison_endings (
    run_id  {{.Key}} NOT NULL PRIMARY KEY,
    project {{.Key}} NOT NULL,
    at      BIGINT NOT NULL
);
CREATE INDEX poison_endings_project ON poison_endings (project, at);

INSERT INTO schema_compat (version, oldest) VALUES (24, 7);

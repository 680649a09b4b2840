-- +goose Up
-- The group of failed runs that a run belongs to: those of one version of a workflow that failed at the same task with the same cause.
-- It is empty for runs that did not fail and for runs of other engines. A loop computes it for runs that failed in older releases.
ALTER TABLE runs ADD COLUMN failure_group {{.Key}} NOT NULL DEFAULT '';
CREATE INDEX runs_failure_group ON runs (project, failure_group, created_at, id) WHERE failure_group <> '';
CREATE INDEX runs_failures ON runs (project, ended_at, failure_group, id) WHERE failure_group <> '';
CREATE INDEX runs_ungrouped ON runs (ended_at, id)
    WHERE status IN ('failed', 'timed_out') AND failure_group = '' AND trigger_kind <> 'import';

-- What was found that an operator has to act on, and what operators did about it. content is the problem as it was last found, as JSON.
-- A problem that no longer exists has the time at which that was found, and is deleted a day later. revision grows with each change by an
-- operator, and when the problem occurs again.
CREATE TABLE problems (
    id              {{.Key}} NOT NULL PRIMARY KEY,
    project         {{.Key}} NOT NULL,
    first_seen      BIGINT NOT NULL,
    last_seen       BIGINT NOT NULL,
    resolved_at     BIGINT,
    revision        BIGINT NOT NULL,
    acknowledged_at BIGINT,
    acknowledger    TEXT   NOT NULL,
    snooze_until    BIGINT,
    snooze_count    BIGINT NOT NULL,
    owner           TEXT   NOT NULL,
    note            TEXT   NOT NULL,
    content         TEXT   NOT NULL
);
CREATE INDEX problems_project ON problems (project, id);

INSERT INTO schema_compat (version, oldest) VALUES (32, 7);

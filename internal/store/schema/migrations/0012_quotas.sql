-- +goose Up
-- What projects may use; 0 is no limit. Whoever gives places locks the project's row, and accepted numbers the runs that asked
-- for one, in order.
CREATE TABLE quotas (
    project         {{.Key}} NOT NULL PRIMARY KEY,
    concurrent_runs BIGINT NOT NULL,
    steps           BIGINT NOT NULL,
    period_seconds  BIGINT NOT NULL,
    accepted        BIGINT NOT NULL
);

-- How many steps were granted in the period that began at begun_at: of the quota, and beyond it to runs that somebody resumed.
-- Whoever grants locks the project's row.
CREATE TABLE quota_periods (
    project  {{.Key}} NOT NULL PRIMARY KEY,
    begun_at BIGINT NOT NULL,
    granted  BIGINT NOT NULL,
    extra    BIGINT NOT NULL
);

-- What open runs took in the period that began at begun_at, how many steps they had entered before, and what they were ever
-- granted. resumed_in is the period in which somebody lets them have more.
CREATE TABLE quota_grants (
    run_id     {{.Key}} NOT NULL PRIMARY KEY,
    project    {{.Key}} NOT NULL,
    begun_at   BIGINT NOT NULL,
    taken      BIGINT NOT NULL,
    entered    BIGINT NOT NULL,
    total      BIGINT NOT NULL,
    resumed_in BIGINT
);

-- A run's number in its project's order of acceptance, of those that waited for a place.
ALTER TABLE runs ADD COLUMN admission BIGINT;
-- Whether the run asks for the steps that it enters: its project had a quota of steps when it was accepted.
ALTER TABLE runs ADD COLUMN metered BOOLEAN NOT NULL DEFAULT FALSE;
-- Each is as small as what it is for: the queues, the runs that have a place, those that wait for steps.
CREATE INDEX runs_admission ON runs (project, admission) WHERE queued_reason = 'admission';
CREATE INDEX runs_places ON runs (project)
    WHERE status IN ('queued', 'running', 'waiting') AND queued_reason <> 'admission' AND trigger_kind <> 'parent';
CREATE INDEX runs_quota ON runs (project, id) WHERE waiting_kind = 'quota';

INSERT INTO schema_compat (version, oldest) VALUES (12, 7);

-- +goose Up
-- Runs that make no progress although they should, and why. A verdict counts while its run still has the sequence: what goes on or
-- ends has another one at once, and loses the row a moment later.
CREATE TABLE run_verdicts (
    run_id     {{.Key}} NOT NULL PRIMARY KEY,
    project    {{.Key}} NOT NULL,
    code       {{.Key}} NOT NULL,
    created_at BIGINT NOT NULL,
    sequence   BIGINT NOT NULL,
    since      BIGINT NOT NULL,
    checked_at BIGINT NOT NULL,
    detail     TEXT   NOT NULL,
    advice     TEXT   NOT NULL
);
CREATE INDEX run_verdicts_code ON run_verdicts (project, code, created_at, run_id);
CREATE INDEX run_verdicts_created ON run_verdicts (project, created_at, run_id);

-- The last workflow task of a run that failed: whoever did it tells, since Temporal's SDK reports the first failure alone.
CREATE TABLE task_failures (
    run_id  {{.Key}} NOT NULL PRIMARY KEY,
    at      BIGINT NOT NULL,
    message TEXT   NOT NULL
);

-- What may be overdue is looked for every two seconds, also where a million runs have ended or wait.
CREATE INDEX runs_due ON runs (status_at, id) WHERE status IN ('queued', 'running');
CREATE INDEX steps_due ON steps (wait_until, run_id) WHERE status = 'waiting' AND wait_until IS NOT NULL;

-- Lists by what started the runs, and by the beginning of an ID or request ID, which is read from the index.
CREATE INDEX runs_trigger ON runs (project, trigger_kind, status, created_at, id);
CREATE INDEX runs_listed ON runs (project, created_at, id, request_id);
DROP INDEX runs_created;

INSERT INTO schema_compat (version, oldest) VALUES (9, 7);

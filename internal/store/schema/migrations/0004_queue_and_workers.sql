-- +goose Up
-- Runs that wait until Temporal is there again: the time after which they are not started any more. Once set it stays; it
-- means something while the run has a place in the queue.
ALTER TABLE runs ADD COLUMN expires_at BIGINT;
-- Whether anyone was told of the run before its start had an outcome: from then on it is not taken away.
ALTER TABLE runs ADD COLUMN told BOOLEAN NOT NULL DEFAULT FALSE;
-- The queue in its order. It is as small as the queue, whatever the number of runs.
CREATE INDEX runs_queue ON runs (created_at, id, queued_reason, expires_at)
    WHERE queued_reason IN ('engine', 'starting') AND expires_at IS NOT NULL;

CREATE TABLE workers (
    server_id    {{.Key}} NOT NULL PRIMARY KEY,
    contract     TEXT   NOT NULL,
    address      TEXT   NOT NULL,
    namespace    TEXT   NOT NULL,
    namespace_id TEXT   NOT NULL,
    projects     TEXT   NOT NULL,
    started_at   BIGINT NOT NULL,
    beat_at      BIGINT NOT NULL
);
CREATE INDEX workers_beat ON workers (beat_at);

INSERT INTO schema_compat (version, oldest) VALUES (4, 3);

-- +goose Up
-- The steps of long runs that have no rows of their own. Runs of older programs have none here.
ALTER TABLE steps ADD COLUMN kept BOOLEAN NOT NULL DEFAULT FALSE;

CREATE TABLE step_summaries (
    run_id      {{.Key}} NOT NULL PRIMARY KEY,
    from_number BIGINT NOT NULL,
    to_number   BIGINT NOT NULL,
    open_steps  TEXT,
    position    BIGINT NOT NULL
);

CREATE TABLE task_summaries (
    run_id    {{.Key}} NOT NULL,
    pointer   {{.Key}} NOT NULL,
    task      TEXT   NOT NULL,
    kind      {{.Key}} NOT NULL,
    count     BIGINT NOT NULL,
    completed BIGINT NOT NULL,
    failed    BIGINT NOT NULL,
    skipped   BIGINT NOT NULL,
    canceled  BIGINT NOT NULL,
    shortest  BIGINT NOT NULL,
    longest   BIGINT NOT NULL,
    total     BIGINT NOT NULL,
    sequence  BIGINT NOT NULL,
    PRIMARY KEY (run_id, pointer)
);

INSERT INTO schema_compat (version, oldest) VALUES (23, 7);

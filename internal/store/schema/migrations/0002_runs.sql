-- +goose Up
-- Key columns compare by bytes on both databases: the same order and the same pages.
-- Big columns come last: a list then reads none of their overflow pages in SQLite.
CREATE TABLE runs (
    id               {{.Key}}    NOT NULL PRIMARY KEY,
    project          {{.Key}}    NOT NULL,
    workflow         {{.Key}}    NOT NULL,
    version          {{.Key}}    NOT NULL,
    document_hash    {{.Key}}    NOT NULL,
    status           {{.Key}}    NOT NULL,
    queued_reason    {{.Key}}    NOT NULL,
    waiting_kind     {{.Key}}    NOT NULL,
    status_at        BIGINT,
    cancel_requested BOOLEAN NOT NULL,
    cancel_reason    TEXT    NOT NULL,
    request_id       {{.Key}},
    trigger_kind     {{.Key}}    NOT NULL,
    actor            TEXT    NOT NULL,
    created_at       BIGINT  NOT NULL,
    started_at       BIGINT,
    ended_at         BIGINT,
    steps_total      BIGINT  NOT NULL,
    steps_done       BIGINT  NOT NULL,
    sequence         BIGINT  NOT NULL,
    position         BIGINT  NOT NULL,
    state_position   BIGINT  NOT NULL,
    interpreter      BIGINT  NOT NULL,
    execution_id     {{.Key}}    NOT NULL,
    error            TEXT,
    input            TEXT,
    output           TEXT
);
CREATE UNIQUE INDEX runs_request ON runs (project, request_id);
CREATE INDEX runs_created ON runs (project, created_at, id);
CREATE INDEX runs_status ON runs (project, status, created_at, id);
-- The version comes last to be read from the index by those who filter by it.
CREATE INDEX runs_workflow ON runs (project, workflow, status, created_at, id, version);

CREATE TABLE steps (
    run_id       {{.Key}}   NOT NULL,
    number       BIGINT NOT NULL,
    path         TEXT   NOT NULL,
    pointer      TEXT   NOT NULL,
    task         TEXT   NOT NULL,
    kind         {{.Key}}   NOT NULL,
    status       {{.Key}}   NOT NULL,
    waiting_kind {{.Key}}   NOT NULL,
    wait_until   BIGINT,
    started_at   BIGINT,
    ended_at     BIGINT,
    sequence     BIGINT NOT NULL,
    position     BIGINT NOT NULL,
    error        TEXT,
    attempts     TEXT,
    input        TEXT,
    output       TEXT,
    PRIMARY KEY (run_id, number)
);
CREATE INDEX steps_changed ON steps (run_id, sequence, number);

INSERT INTO schema_compat (version, oldest) VALUES (2, 2);

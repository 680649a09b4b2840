-- +goose Up
-- One thing that is done to many runs. The counts are kept in the transactions that change what they count.
CREATE TABLE batches (
    id           {{.Key}} NOT NULL PRIMARY KEY,
    project      {{.Key}} NOT NULL REFERENCES projects (name),
    request_id   {{.Key}} NOT NULL,
    fingerprint  TEXT    NOT NULL,
    action       TEXT    NOT NULL,
    version      TEXT    NOT NULL,
    reason       TEXT    NOT NULL,
    rate         DOUBLE PRECISION NOT NULL,
    actor_kind   TEXT    NOT NULL,
    actor_name   TEXT    NOT NULL,
    created_at   BIGINT  NOT NULL,
    ended_at     BIGINT,
    paused       BOOLEAN NOT NULL,
    -- Whether all runs are taken down that the filter selects; up to there, the last one that is.
    selected     BOOLEAN NOT NULL,
    selected_at  BIGINT,
    selected_run TEXT    NOT NULL,
    total        BIGINT  NOT NULL,
    succeeded    BIGINT  NOT NULL,
    refused      BIGINT  NOT NULL,
    failed       BIGINT  NOT NULL,
    waiting      TEXT    NOT NULL,
    filter       TEXT
);
CREATE UNIQUE INDEX batches_request ON batches (project, request_id);
CREATE INDEX batches_newest ON batches (project, id);
CREATE INDEX batches_active ON batches (id) WHERE ended_at IS NULL AND NOT paused;

CREATE TABLE batch_items (
    batch      {{.Key}} NOT NULL,
    number     BIGINT  NOT NULL,
    run_id     {{.Key}} NOT NULL,
    status     {{.Key}} NOT NULL,
    -- Whether somebody has begun with it, who may have died before telling.
    begun      BOOLEAN NOT NULL,
    ended_at   BIGINT,
    new_run_id TEXT    NOT NULL,
    error      TEXT    NOT NULL,
    PRIMARY KEY (batch, number)
);
CREATE UNIQUE INDEX batch_items_run ON batch_items (run_id, batch);
CREATE INDEX batch_items_status ON batch_items (batch, status, number);

INSERT INTO schema_compat (version, oldest) VALUES (10, 7);

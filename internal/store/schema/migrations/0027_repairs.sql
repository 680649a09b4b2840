-- +goose Up
-- Runs whose rows are, or may be, behind Temporal, and are to be repaired by a worker: one request per run. claim grows with each
-- claim and generation with each request, so that a claim that was lost ends nothing and a request that comes meanwhile stays.
CREATE TABLE run_repairs (
    run_id       {{.Key}} NOT NULL PRIMARY KEY,
    requested_at BIGINT  NOT NULL,
    due_at       BIGINT  NOT NULL,
    reason       TEXT    NOT NULL,
    behind       BOOLEAN NOT NULL,
    forced       BOOLEAN NOT NULL,
    correction   TEXT    NOT NULL,
    attempts     BIGINT  NOT NULL,
    done         TEXT    NOT NULL,
    problem      TEXT    NOT NULL,
    claim        BIGINT  NOT NULL,
    generation   BIGINT  NOT NULL
);
CREATE INDEX run_repairs_due ON run_repairs (due_at);

-- When a row was last written by the projection: it is compared with Temporal only when that is some seconds ago.
ALTER TABLE runs ADD COLUMN written_at BIGINT;

INSERT INTO schema_compat (version, oldest) VALUES (27, 7);

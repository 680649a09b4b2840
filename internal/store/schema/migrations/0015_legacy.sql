-- +goose Up
-- What is known of runs that another engine ran, beside their rows: where they ran, and the source's row, waits and snapshots as
-- JSON. The fingerprint tells whether the source has changed since; settled_at is when an open run was ended because its engine is gone.
CREATE TABLE run_legacy (
    run_id      {{.Key}} NOT NULL PRIMARY KEY,
    engine      TEXT   NOT NULL,
    fingerprint TEXT   NOT NULL,
    settled_at  BIGINT,
    original    TEXT   NOT NULL
);

INSERT INTO schema_compat (version, oldest) VALUES (15, 7);

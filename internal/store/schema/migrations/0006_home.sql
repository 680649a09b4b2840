-- +goose Up
-- Where the runs were last seen in Temporal: one row, none before the first comparison. A server that is pointed at another
-- Temporal by mistake tells from it that what it does not find there is not lost.
CREATE TABLE runs_home (
    one          {{if .Postgres}}SMALLINT{{else}}INTEGER{{end}} NOT NULL PRIMARY KEY CHECK (one = 1),
    address      TEXT   NOT NULL,
    namespace    TEXT   NOT NULL,
    namespace_id TEXT   NOT NULL,
    since        BIGINT NOT NULL
);

INSERT INTO schema_compat (version, oldest) VALUES (6, 3);

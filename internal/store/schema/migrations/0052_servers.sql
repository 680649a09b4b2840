-- +goose Up
-- The server processes, of all roles. A record that is neither renewed nor removed is that of a lost server.
CREATE TABLE servers (
    id         {{.Key}} NOT NULL PRIMARY KEY,
    instance   TEXT   NOT NULL,
    roles      TEXT   NOT NULL,
    version    TEXT   NOT NULL,
    started_at BIGINT NOT NULL,
    beat_at    BIGINT NOT NULL
);

INSERT INTO schema_compat (version, oldest) VALUES (52, 7);

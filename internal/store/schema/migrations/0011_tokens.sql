-- +goose Up
-- Tokens of the API. Only a hash of their text is kept.
CREATE TABLE tokens (
    id           {{.Key}} NOT NULL PRIMARY KEY,
    name         {{.Key}} NOT NULL,
    hash         {{.Key}} NOT NULL,
    roles        TEXT   NOT NULL,
    creator      TEXT   NOT NULL,
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT,
    last_used_at BIGINT,
    revoked_at   BIGINT
);
CREATE UNIQUE INDEX tokens_name ON tokens (name) WHERE revoked_at IS NULL;
CREATE INDEX tokens_newest ON tokens (created_at, id);

INSERT INTO schema_compat (version, oldest) VALUES (11, 7);

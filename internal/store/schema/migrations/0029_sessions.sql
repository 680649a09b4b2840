-- +goose Up
-- Sessions of browsers. Only a hash of their secret is kept. A session ends idle microseconds after its last use, at expires_at, or at ended_at.
CREATE TABLE sessions (
    id           {{.Key}} NOT NULL PRIMARY KEY,
    hash         {{.Key}} NOT NULL,
    token        {{.Key}} NOT NULL,
    created_at   BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    idle         BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    ended_at     BIGINT
);
CREATE INDEX sessions_newest ON sessions (created_at, id);

INSERT INTO schema_compat (version, oldest) VALUES (29, 7);

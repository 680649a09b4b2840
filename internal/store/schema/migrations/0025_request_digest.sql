-- +goose Up
-- A keyed digest of what was asked with a request ID. Rows of before have none and are compared without it.
ALTER TABLE runs ADD COLUMN request_digest TEXT NOT NULL DEFAULT '';

INSERT INTO schema_compat (version, oldest) VALUES (25, 7);

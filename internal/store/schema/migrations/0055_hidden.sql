-- +goose Up
-- The rows whose marks have a sealed original, so that a deleted original is noticed: a mark may also be part of the data.
ALTER TABLE steps ADD COLUMN redacted BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE runs ADD COLUMN input_redacted BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE runs ADD COLUMN end_redacted BOOLEAN NOT NULL DEFAULT FALSE;

INSERT INTO schema_compat (version, oldest) VALUES (55, 7);

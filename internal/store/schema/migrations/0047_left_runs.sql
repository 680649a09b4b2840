-- +goose Up
-- The Temporal in which an open run was left when an administrator adopted another one, as JSON; NULL for runs in the recorded one.
ALTER TABLE runs ADD COLUMN left_in TEXT;

CREATE INDEX runs_left ON runs (id) WHERE left_in IS NOT NULL;

INSERT INTO schema_compat (version, oldest) VALUES (47, 7);

-- +goose Up
-- What an administrator decides for one project. 0 steps: the limit of the servers.
ALTER TABLE projects ADD COLUMN max_steps BIGINT NOT NULL DEFAULT 0;
ALTER TABLE projects ADD COLUMN end_poison BOOLEAN NOT NULL DEFAULT FALSE;

INSERT INTO schema_compat (version, oldest) VALUES (22, 7);

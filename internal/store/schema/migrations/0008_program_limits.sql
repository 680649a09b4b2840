-- +goose Up
-- Limits of the programs of a project, as a JSON object; NULL: only those of the runners.
ALTER TABLE projects ADD COLUMN program_limits TEXT;

INSERT INTO schema_compat (version, oldest) VALUES (8, 1);

-- +goose Up
-- The kinds of programs that the runs of a project may execute, as a JSON list; NULL: none.
ALTER TABLE projects ADD COLUMN runners TEXT;

INSERT INTO schema_compat (version, oldest) VALUES (3, 1);

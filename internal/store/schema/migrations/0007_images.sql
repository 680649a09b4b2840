-- +goose Up
-- Patterns of the images that the containers of a project may use, as a JSON list; NULL: no restriction but that of the runners.
ALTER TABLE projects ADD COLUMN images TEXT;

INSERT INTO schema_compat (version, oldest) VALUES (7, 1);

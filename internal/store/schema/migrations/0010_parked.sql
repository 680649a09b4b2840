-- +goose Up
-- When something last happened in the project, by the clock of the database; 0: nothing since this column exists. parked_at is since when no
-- server serves the project, because nothing happens in it; NULL: it is served.
ALTER TABLE projects ADD COLUMN active_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE projects ADD COLUMN parked_at BIGINT;
CREATE INDEX projects_served ON projects (name) WHERE parked_at IS NULL;

INSERT INTO schema_compat (version, oldest) VALUES (10, 1);

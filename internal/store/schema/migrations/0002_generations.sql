-- +goose Up

-- The number of starts between a run and one by a person or by the clock, and the workflows of its ancestors, one a line. recurred_at is the
-- creation of a run that has an ancestor of its own workflow, NULL for others.
ALTER TABLE run_links ADD COLUMN generation BIGINT NOT NULL DEFAULT 0;
ALTER TABLE run_links ADD COLUMN ancestors TEXT NOT NULL DEFAULT '';
ALTER TABLE run_links ADD COLUMN recurred_at BIGINT;
CREATE INDEX run_links_recurred ON run_links (recurred_at) WHERE recurred_at IS NOT NULL;

-- The largest generation of a run of the project; 0: that of the servers.
ALTER TABLE projects ADD COLUMN max_generation BIGINT NOT NULL DEFAULT 0;

INSERT INTO schema_compat (version, oldest) VALUES (2, 1);

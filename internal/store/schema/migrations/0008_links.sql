-- +goose Up
-- Runs that came from others: by a replay, or as a child. Most did not, so this is no part of their rows.
CREATE TABLE run_links (
    run_id     {{.Key}} NOT NULL PRIMARY KEY,
    replay_of  {{.Key}} NOT NULL,
    parent     {{.Key}} NOT NULL,
    path       TEXT   NOT NULL,
    depth      BIGINT NOT NULL
);
CREATE INDEX run_links_replays ON run_links (replay_of, run_id) WHERE replay_of <> '';
CREATE INDEX run_links_children ON run_links (parent, run_id) WHERE parent <> '';

INSERT INTO schema_compat (version, oldest) VALUES (8, 7);

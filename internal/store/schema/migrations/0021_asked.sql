-- +goose Up
-- Runs that wait and that somebody has asked to be canceled: few, and looked for every two seconds.
CREATE INDEX runs_asked ON runs (id) WHERE status = 'waiting' AND cancel_requested;

INSERT INTO schema_compat (version, oldest) VALUES (21, 7);

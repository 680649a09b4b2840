-- +goose Up
-- What events did to a run.
CREATE INDEX deliveries_run ON deliveries (run_id, position, id);

INSERT INTO schema_compat (version, oldest) VALUES (17, 7);

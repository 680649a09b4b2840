-- +goose Up

-- The failed attempts of a try task that is attempted again; 0 for every other step.
ALTER TABLE steps ADD COLUMN retries BIGINT NOT NULL DEFAULT 0;
CREATE INDEX steps_retried ON steps (run_id, number) WHERE retries > 0;

INSERT INTO schema_compat (version, oldest) VALUES (5, 1);

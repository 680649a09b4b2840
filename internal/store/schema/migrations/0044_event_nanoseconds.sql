-- +goose Up
-- The nanoseconds of an event's time below its microsecond, so that the time is given as it was published.
ALTER TABLE events ADD COLUMN occurred_nanos BIGINT NOT NULL DEFAULT 0;

INSERT INTO schema_compat (version, oldest) VALUES (44, 7);

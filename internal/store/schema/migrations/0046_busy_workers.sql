-- +goose Up
-- The projects whose task queues a worker does not poll now because its slots are in use, as JSON.
ALTER TABLE workers ADD COLUMN busy TEXT;

INSERT INTO schema_compat (version, oldest) VALUES (46, 7);

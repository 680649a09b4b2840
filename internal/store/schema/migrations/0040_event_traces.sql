-- +goose Up
-- The span of the request that published an event, as the header traceparent of W3C Trace Context has it; NULL without traces, and for events
-- that a process of the release before has accepted.
ALTER TABLE events ADD COLUMN traceparent TEXT;

INSERT INTO schema_compat (version, oldest) VALUES (40, 7);

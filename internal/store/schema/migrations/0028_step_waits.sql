-- +goose Up
-- What the interpreter alone can report of what an open step waits for, as JSON: the deadline where an expression gave it, and which of several
-- events have come. Steps that an older release writes have none, or an old one that their end makes void.
ALTER TABLE steps ADD COLUMN wait_details TEXT;

INSERT INTO schema_compat (version, oldest) VALUES (28, 7);

-- +goose Up
-- What the marks in events stand for, sealed: who routes and delivers reads it, who shows events does not. NULL where there are no
-- marks, and in what an older program writes.
ALTER TABLE events ADD COLUMN original_key {{.Key}};
ALTER TABLE events ADD COLUMN original {{.Bytes}};

INSERT INTO schema_compat (version, oldest) VALUES (18, 7);

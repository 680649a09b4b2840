-- +goose Up
-- Runs whose end another run waits for and was not told of yet.
CREATE TABLE run_awaited (
    run_id   {{.Key}} NOT NULL PRIMARY KEY,
    parent   {{.Key}} NOT NULL,
    call_key TEXT NOT NULL
);
CREATE INDEX run_awaited_parents ON run_awaited (parent);

INSERT INTO schema_compat (version, oldest) VALUES (13, 7);

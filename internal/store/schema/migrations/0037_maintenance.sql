-- +goose Up
-- Whether the platform starts new runs: one row.
CREATE TABLE maintenance (
    id     BIGINT PRIMARY KEY,
    active BOOLEAN NOT NULL,
    reason TEXT NOT NULL,
    actor  TEXT NOT NULL,
    since  BIGINT
);
INSERT INTO maintenance (id, active, reason, actor) VALUES (1, FALSE, '', '');

INSERT INTO schema_compat (version, oldest) VALUES (37, 7);

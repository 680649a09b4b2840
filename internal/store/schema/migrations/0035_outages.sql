-- +goose Up
-- Outages of Temporal, as each server saw them. A server confirms an open outage every few seconds (seen_at); one that was killed leaves
-- ended_at empty, and its outage is read as ended when it was last confirmed.
CREATE TABLE outages (
    server   {{.Key}} NOT NULL,
    since    BIGINT NOT NULL,
    kind     TEXT   NOT NULL,
    seen_at  BIGINT NOT NULL,
    ended_at BIGINT,
    PRIMARY KEY (server, since)
);
CREATE INDEX outages_newest ON outages (since);

INSERT INTO schema_compat (version, oldest) VALUES (35, 7);

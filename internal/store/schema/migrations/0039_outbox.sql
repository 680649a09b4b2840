-- +goose Up
-- Events that report failures, committed with what they report, until they are moved into the inbox of their project.
CREATE TABLE event_outbox (
    project     {{.Key}} NOT NULL,
    occurred_at BIGINT  NOT NULL,
    id          {{.Key}} NOT NULL,
    type        TEXT    NOT NULL,
    source      TEXT    NOT NULL,
    subject     TEXT    NOT NULL,
    extensions  TEXT,
    data        TEXT    NOT NULL,
    PRIMARY KEY (project, occurred_at, id)
);

-- Runs that were started by such an event, and the runs that those have started: their failures start no workflow.
ALTER TABLE run_links ADD COLUMN after_failure BOOLEAN NOT NULL DEFAULT FALSE;

INSERT INTO schema_compat (version, oldest) VALUES (39, 7);

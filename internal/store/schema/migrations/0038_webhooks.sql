-- +goose Up
-- Receivers of the events of projects. url is shown, sealed has the address and the secrets. Events behind since become deliveries. A webhook
-- with paused_at is paused; failing_since is the first failed attempt since the last one that succeeded.
CREATE TABLE webhooks (
    id             {{.Key}} NOT NULL PRIMARY KEY,
    project        {{.Key}} NOT NULL REFERENCES projects (name) ON DELETE CASCADE,
    name           {{.Key}} NOT NULL,
    url            TEXT    NOT NULL,
    format         TEXT    NOT NULL,
    filter         TEXT    NOT NULL,
    sealed         {{.Bytes}} NOT NULL,
    since          BIGINT  NOT NULL,
    paused_at      BIGINT,
    pause_reason   TEXT    NOT NULL,
    disabled       BOOLEAN NOT NULL,
    failing_since  BIGINT,
    last_error     TEXT    NOT NULL,
    succeeded_at   BIGINT,
    previous_until BIGINT,
    creator        TEXT    NOT NULL,
    updater        TEXT    NOT NULL,
    created_at     BIGINT  NOT NULL,
    updated_at     BIGINT  NOT NULL
);
CREATE UNIQUE INDEX webhooks_name ON webhooks (project, name);
CREATE INDEX webhooks_active ON webhooks (project) WHERE paused_at IS NULL;

-- The position up to which the events of a project are matched with its webhooks. A process that matches them holds the row.
CREATE TABLE webhook_positions (
    project  {{.Key}} NOT NULL PRIMARY KEY REFERENCES projects (name) ON DELETE CASCADE,
    position BIGINT NOT NULL
);

-- One event for one webhook. due_at is NULL for a finished delivery, and while its webhook is paused. While claimed_until has not passed, the
-- process with the claim sends it. retry_from is the beginning of the retry period. The event is kept here, so that it can be sent after the
-- event itself was deleted.
CREATE TABLE webhook_deliveries (
    id            {{.Key}} NOT NULL PRIMARY KEY,
    project       {{.Key}} NOT NULL,
    webhook       {{.Key}} NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    position      BIGINT  NOT NULL,
    status        {{.Key}} NOT NULL,
    due_at        BIGINT,
    claimed_until BIGINT,
    claim         TEXT    NOT NULL,
    attempts      BIGINT  NOT NULL,
    retry_from    BIGINT  NOT NULL,
    failures      BIGINT  NOT NULL,
    http_status   BIGINT  NOT NULL,
    created_at    BIGINT  NOT NULL,
    updated_at    BIGINT  NOT NULL,
    event_id      TEXT    NOT NULL,
    event_source  TEXT    NOT NULL,
    event_type    TEXT    NOT NULL,
    reason        TEXT    NOT NULL,
    history       TEXT,
    event         TEXT    NOT NULL
);
CREATE INDEX webhook_deliveries_newest ON webhook_deliveries (webhook, created_at, id);
CREATE INDEX webhook_deliveries_status ON webhook_deliveries (webhook, status, created_at, id);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_claimed ON webhook_deliveries (webhook) WHERE claimed_until IS NOT NULL;
CREATE INDEX webhook_deliveries_finished ON webhook_deliveries (updated_at) WHERE status <> 'pending';

INSERT INTO schema_compat (version, oldest) VALUES (38, 7);

-- +goose Up
-- What a version brings with it: what events start its workflow, and when the clock does. JSON, NULL where there is none.
ALTER TABLE versions ADD COLUMN trigger_spec TEXT;
ALTER TABLE versions ADD COLUMN timer TEXT;

-- Where a project's events come in: whoever accepts any holds its row, which makes the order of positions that of the
-- commits.
CREATE TABLE inboxes (
    project     {{.Key}} NOT NULL PRIMARY KEY REFERENCES projects (name),
    head        BIGINT  NOT NULL,
    parked      BOOLEAN NOT NULL,
    received_at BIGINT  NOT NULL
);
CREATE INDEX inboxes_news ON inboxes (received_at);

-- Who takes them out, and how far it has come. Those who take hold its row, those who accept never do.
CREATE TABLE dispatchers (
    project       {{.Key}} NOT NULL PRIMARY KEY REFERENCES projects (name),
    task_queue    {{.Key}} NOT NULL,
    epoch         BIGINT  NOT NULL,
    holder        TEXT    NOT NULL,
    routed        BIGINT  NOT NULL,
    pending       BIGINT  NOT NULL,
    progressed_at BIGINT
);

-- Events never change: how far each has come follows from the positions. Big columns come last.
CREATE TABLE events (
    project           {{.Key}} NOT NULL,
    position          BIGINT  NOT NULL,
    id                {{.Key}} NOT NULL,
    source            {{.Key}} NOT NULL,
    type              {{.Key}} NOT NULL,
    subject           TEXT    NOT NULL,
    occurred_at       BIGINT,
    data_content_type TEXT    NOT NULL,
    data_schema       TEXT    NOT NULL,
    data_base64       BOOLEAN NOT NULL,
    received_at       BIGINT  NOT NULL,
    actor             TEXT    NOT NULL,
    extensions        TEXT,
    data              TEXT,
    PRIMARY KEY (project, position)
);
CREATE UNIQUE INDEX events_id ON events (project, id, source);
CREATE INDEX events_type ON events (project, type, position);
CREATE INDEX events_source ON events (project, source, position);
CREATE INDEX events_received ON events (project, received_at, position);

-- What matching made of events: one row for a stretch of them with the same outcome. Those behind the last row are pending.
CREATE TABLE routings (
    project  {{.Key}} NOT NULL,
    last     BIGINT  NOT NULL,
    first    BIGINT  NOT NULL,
    status   {{.Key}} NOT NULL,
    reason   TEXT    NOT NULL,
    PRIMARY KEY (project, last)
){{.WithoutRowID}};
CREATE UNIQUE INDEX routings_status ON routings (project, status, last, first);

-- What is to be done for events. due_at is when; it is NULL for one that is settled, and for one that waits behind an
-- earlier one of its run. claimed_until is set while somebody may be at it, claimed_by is the epoch of whoever was last.
-- IDs are unique by themselves, which planners know of a key without having seen the rows: many are looked up at once.
CREATE TABLE deliveries (
    id            {{.Key}} NOT NULL PRIMARY KEY,
    project       {{.Key}} NOT NULL,
    position      BIGINT  NOT NULL,
    kind          {{.Key}} NOT NULL,
    status        {{.Key}} NOT NULL,
    due_at        BIGINT,
    claimed_until BIGINT,
    claimed_by    BIGINT  NOT NULL,
    attempts      BIGINT  NOT NULL,
    workflow      TEXT    NOT NULL,
    version       TEXT    NOT NULL,
    run_id        {{.Key}} NOT NULL,
    listener      TEXT    NOT NULL,
    created_at    BIGINT  NOT NULL,
    updated_at    BIGINT  NOT NULL,
    reason        TEXT    NOT NULL,
    positions     TEXT    NOT NULL
);
CREATE INDEX deliveries_event ON deliveries (project, position, id);
CREATE INDEX deliveries_due ON deliveries (project, due_at, position) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_news ON deliveries (due_at, project) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_lane ON deliveries (run_id, position, id) WHERE status = 'pending' AND kind = 'wake';
CREATE INDEX deliveries_claimed ON deliveries (project) WHERE claimed_until IS NOT NULL;
CREATE INDEX deliveries_dead ON deliveries (project, position) WHERE status = 'dead';

-- The events of deliveries that are for several, but for the last, which the delivery itself names.
CREATE TABLE delivery_events (
    project  {{.Key}} NOT NULL,
    position BIGINT  NOT NULL,
    delivery {{.Key}} NOT NULL,
    PRIMARY KEY (project, position, delivery)
){{.WithoutRowID}};

-- Runs that wait for events; in the table of types, those without one take any.
CREATE TABLE listeners (
    project {{.Key}} NOT NULL,
    id      {{.Key}} NOT NULL,
    run_id  {{.Key}} NOT NULL,
    since   BIGINT  NOT NULL,
    spec    TEXT    NOT NULL,
    PRIMARY KEY (project, id)
);
CREATE INDEX listeners_run ON listeners (run_id);
CREATE TABLE listener_types (
    project  {{.Key}} NOT NULL,
    type     {{.Key}} NOT NULL,
    listener {{.Key}} NOT NULL,
    PRIMARY KEY (project, type, listener),
    FOREIGN KEY (project, listener) REFERENCES listeners (project, id) ON DELETE CASCADE
){{.WithoutRowID}};
CREATE INDEX listener_types_listener ON listener_types (project, listener);

-- What starts a workflow, as its newest version says.
CREATE TABLE triggers (
    project      {{.Key}} NOT NULL,
    workflow     {{.Key}} NOT NULL,
    version      {{.Key}} NOT NULL,
    hash         {{.Key}} NOT NULL,
    since        BIGINT  NOT NULL,
    published_at BIGINT  NOT NULL,
    spec         TEXT,
    timer        TEXT,
    PRIMARY KEY (project, workflow),
    FOREIGN KEY (project, workflow) REFERENCES workflows (project, name) ON DELETE CASCADE
);
CREATE INDEX triggers_timer ON triggers (project, workflow) WHERE timer IS NOT NULL;
CREATE TABLE trigger_types (
    project  {{.Key}} NOT NULL,
    type     {{.Key}} NOT NULL,
    workflow {{.Key}} NOT NULL,
    PRIMARY KEY (project, type, workflow),
    FOREIGN KEY (project, workflow) REFERENCES triggers (project, workflow) ON DELETE CASCADE
){{.WithoutRowID}};
CREATE INDEX trigger_types_workflow ON trigger_types (project, workflow);

-- Sets of events that some trigger needs several of, and does not have all yet. The key is too long for an index; its hash
-- is in its place.
CREATE TABLE partials (
    project   {{.Key}} NOT NULL,
    workflow  {{.Key}} NOT NULL,
    key_hash  {{.Key}} NOT NULL,
    key       TEXT    NOT NULL,
    positions TEXT    NOT NULL,
    PRIMARY KEY (project, workflow, key_hash),
    FOREIGN KEY (project, workflow) REFERENCES triggers (project, workflow) ON DELETE CASCADE
);

-- Who owned the dispatchers.
CREATE TABLE owner_changes (
    project         {{.Key}} NOT NULL,
    task_queue      {{.Key}} NOT NULL,
    epoch           BIGINT  NOT NULL,
    execution       {{.Key}} NOT NULL,
    at              BIGINT  NOT NULL,
    holder          TEXT    NOT NULL,
    how             TEXT    NOT NULL,
    previous_epoch  BIGINT  NOT NULL,
    previous_holder TEXT    NOT NULL,
    ended           TEXT    NOT NULL,
    reason          TEXT    NOT NULL,
    PRIMARY KEY (project, task_queue, epoch, execution)
);

INSERT INTO schema_compat (version, oldest) VALUES (7, 3);

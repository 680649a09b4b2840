-- +goose Up
-- The schema of the first release. Key columns compare by bytes on both databases: the same order and the same pages. Times are microseconds
-- since 1970. Big columns come last: a list then reads none of their overflow pages in SQLite.
--
-- The compatibility of each version of the schema: a binary whose newest migration is M works on this database if M is at least oldest in
-- the row of the newest version.
CREATE TABLE schema_compat (
    version BIGINT NOT NULL PRIMARY KEY,
    oldest  BIGINT NOT NULL
);

CREATE TABLE projects (
    name        {{.Key}} NOT NULL PRIMARY KEY,
    description TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    -- The limit of steps per run; 0: that of the servers.
    max_steps   BIGINT NOT NULL DEFAULT 0,
    end_poison  BOOLEAN NOT NULL DEFAULT FALSE
);
INSERT INTO projects (name, description, created_at)
VALUES ('default', 'The project that exists from the start.',
{{- if .Postgres}} CAST(EXTRACT(EPOCH FROM now()) * 1000000 AS BIGINT)
{{- else}} CAST(strftime('%s', 'now') AS BIGINT) * 1000000{{end}});

CREATE TABLE documents (
    hash      {{.Key}} NOT NULL PRIMARY KEY,
    canonical TEXT NOT NULL
);

CREATE TABLE workflows (
    project        {{.Key}} NOT NULL REFERENCES projects (name),
    name           {{.Key}} NOT NULL,
    short_name     {{.Key}} NOT NULL,
    title          TEXT NOT NULL,
    summary        TEXT NOT NULL,
    state          {{.Key}} NOT NULL,
    latest_version {{.Key}} NOT NULL,
    pause_reason   TEXT NOT NULL,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL,
    PRIMARY KEY (project, name)
);
CREATE INDEX workflows_short_name ON workflows (project, short_name, name);

CREATE TABLE drafts (
    project  {{.Key}} NOT NULL,
    workflow {{.Key}} NOT NULL,
    title    TEXT NOT NULL,
    summary  TEXT NOT NULL,
    source   TEXT NOT NULL,
    saved_at BIGINT NOT NULL,
    PRIMARY KEY (project, workflow),
    FOREIGN KEY (project, workflow) REFERENCES workflows (project, name)
);

CREATE TABLE versions (
    project      {{.Key}} NOT NULL,
    workflow     {{.Key}} NOT NULL,
    version      {{.Key}} NOT NULL,
    hash         {{.Key}} NOT NULL REFERENCES documents (hash),
    title        TEXT NOT NULL,
    summary      TEXT NOT NULL,
    publisher    TEXT NOT NULL,
    published_at BIGINT NOT NULL,
    source       TEXT NOT NULL,
    -- The events that start the workflow, and its schedule, as JSON; NULL where there is none.
    trigger_spec TEXT,
    timer        TEXT,
    PRIMARY KEY (project, workflow, version),
    FOREIGN KEY (project, workflow) REFERENCES workflows (project, name)
);
CREATE INDEX versions_newest ON versions (project, workflow, published_at, version);

-- Runs, with the state that the projection of Temporal's histories has written.
CREATE TABLE runs (
    id               {{.Key}} NOT NULL PRIMARY KEY,
    project          {{.Key}} NOT NULL,
    workflow         {{.Key}} NOT NULL,
    version          {{.Key}} NOT NULL,
    document_hash    {{.Key}} NOT NULL,
    status           {{.Key}} NOT NULL,
    queued_reason    {{.Key}} NOT NULL,
    waiting_kind     {{.Key}} NOT NULL,
    status_at        BIGINT,
    cancel_requested BOOLEAN NOT NULL,
    cancel_reason    TEXT NOT NULL,
    request_id       {{.Key}},
    trigger_kind     {{.Key}} NOT NULL,
    actor            TEXT NOT NULL,
    created_at       BIGINT NOT NULL,
    started_at       BIGINT,
    ended_at         BIGINT,
    steps_total      BIGINT NOT NULL,
    steps_done       BIGINT NOT NULL,
    sequence         BIGINT NOT NULL,
    position         BIGINT NOT NULL,
    state_position   BIGINT NOT NULL,
    interpreter      BIGINT NOT NULL,
    execution_id     {{.Key}} NOT NULL,
    -- When a run that waits for Temporal is not started any more. It stays set, and is used while the run is in the queue.
    expires_at       BIGINT,
    -- Whether a caller has seen the run before its start had an outcome: from then on its row is not removed.
    disclosed        BOOLEAN NOT NULL DEFAULT FALSE,
    -- The executions that a reset in Temporal has replaced, separated by spaces: their updates do not count.
    left_executions  TEXT NOT NULL DEFAULT '',
    -- The run's number in its project's order of acceptance, of the runs that wait for a slot.
    admission        BIGINT,
    -- Whether the run requests the steps that it enters: its project had a quota of steps when the run was accepted.
    metered          BOOLEAN NOT NULL DEFAULT FALSE,
    redacted         BOOLEAN NOT NULL DEFAULT FALSE,
    -- A keyed digest of the arguments of the request with the request ID; empty for imported runs.
    request_digest   TEXT NOT NULL DEFAULT '',
    -- When the projection last wrote the row: a row is compared with Temporal only some seconds later.
    written_at       BIGINT,
    -- The group of failed runs that the run belongs to: those of one workflow that failed at the same task with the same cause. It is empty
    -- for runs that did not fail, and for runs of other engines.
    failure_group    {{.Key}} NOT NULL DEFAULT '',
    -- The position after which the run takes events: that of the newest event at its acceptance; NULL for imported runs.
    events_after     BIGINT,
    -- The Temporal in which an open run was left when an administrator adopted another one, as JSON; NULL for runs in the recorded one.
    left_in          TEXT,
    input_redacted   BOOLEAN NOT NULL DEFAULT FALSE,
    end_redacted     BOOLEAN NOT NULL DEFAULT FALSE,
    error            TEXT,
    input            TEXT,
    output           TEXT
);
CREATE INDEX runs_status ON runs (project, status, created_at, id);
-- Filters by version read it from the index: it is the last column.
CREATE INDEX runs_workflow ON runs (project, workflow, status, created_at, id, version);
-- The queue in its order. The index is as small as the queue.
CREATE INDEX runs_queue ON runs (created_at, id, queued_reason, expires_at)
    WHERE queued_reason IN ('engine', 'starting') AND expires_at IS NOT NULL;
-- Open runs are read often, also where a million runs have ended.
CREATE INDEX runs_open ON runs (id) WHERE status IN ('queued', 'running', 'waiting');
-- Runs that may be overdue are read every two seconds, also where a million runs have ended or wait.
CREATE INDEX runs_due ON runs (status_at, id) WHERE status IN ('queued', 'running');
-- Lists by trigger, and by the beginning of an ID or request ID, which is read from the index.
CREATE INDEX runs_trigger ON runs (project, trigger_kind, status, created_at, id);
CREATE INDEX runs_listed ON runs (project, created_at, id, request_id);
-- Runs by the end of their ID, which is random.
CREATE INDEX runs_id_end ON runs (project, substr(id, 29));
-- The queues for slots, the runs that have a slot, those that wait for steps.
CREATE INDEX runs_admission ON runs (project, admission) WHERE queued_reason = 'admission';
CREATE INDEX runs_places ON runs (project)
    WHERE status IN ('queued', 'running', 'waiting') AND queued_reason <> 'admission' AND trigger_kind <> 'parent';
CREATE INDEX runs_quota ON runs (project, id) WHERE waiting_kind = 'quota';
-- Ended runs by the time of their end, for retention. Imported rows may have no such time.
CREATE INDEX runs_ended ON runs (project, COALESCE(ended_at, status_at, created_at), id)
    WHERE status IN ('completed', 'failed', 'canceled', 'terminated', 'timed_out');
-- Runs whose request IDs have the same beginning are far apart in the table: their order is read from the index.
CREATE UNIQUE INDEX {{if .Postgres}}runs_requested ON runs (project, request_id) INCLUDE (created_at, id, status){{else}}runs_request ON runs (project, request_id){{end}};
-- Runs whose ID does not begin with the milliseconds of their creation, within ten minutes, as a UUIDv7 does.
CREATE INDEX runs_untimed ON runs (project, id, created_at)
    WHERE substr(id, 1, 8) || substr(id, 10, 4) NOT BETWEEN
{{- if .Postgres}} lpad(to_hex(created_at / 1000 - 600000), 12, '0') AND lpad(to_hex(created_at / 1000 + 600000), 12, '0')
{{- else}} printf('%012x', created_at / 1000 - 600000) AND printf('%012x', created_at / 1000 + 600000){{end}};
-- Waiting runs with a requested cancellation are few, and read every two seconds.
CREATE INDEX runs_cancel_requested ON runs (id) WHERE status = 'waiting' AND cancel_requested;
CREATE INDEX runs_failure_group ON runs (project, failure_group, created_at, id) WHERE failure_group <> '';
-- The failures of a project with their versions.
CREATE INDEX runs_failed_versions ON runs (project, ended_at, failure_group, id, version) WHERE failure_group <> '';
CREATE INDEX runs_left ON runs (id) WHERE left_in IS NOT NULL;

CREATE TABLE steps (
    run_id       {{.Key}} NOT NULL,
    number       BIGINT NOT NULL,
    path         TEXT NOT NULL,
    pointer      TEXT NOT NULL,
    task         TEXT NOT NULL,
    kind         {{.Key}} NOT NULL,
    status       {{.Key}} NOT NULL,
    waiting_kind {{.Key}} NOT NULL,
    wait_until   BIGINT,
    started_at   BIGINT,
    ended_at     BIGINT,
    sequence     BIGINT NOT NULL,
    position     BIGINT NOT NULL,
    -- A step of a long run that keeps its row although most steps of the run are only in its summary.
    kept         BOOLEAN NOT NULL DEFAULT FALSE,
    -- The sizes in bytes of JSON of inputs and outputs that are stored shortened, as the interpreter recorded them; 0 for values that are stored
    -- whole.
    input_size   BIGINT NOT NULL DEFAULT 0,
    output_size  BIGINT NOT NULL DEFAULT 0,
    -- Whether marks of the row have a sealed original, so that a deleted original is noticed: a mark may also be part of the data.
    redacted     BOOLEAN NOT NULL DEFAULT FALSE,
    -- What only the interpreter can report about the wait of an open step, as JSON: the deadline where an expression computes it, and which of
    -- several events have arrived.
    wait_details TEXT,
    error        TEXT,
    attempts     TEXT,
    input        TEXT,
    output       TEXT,
    PRIMARY KEY (run_id, number)
);
CREATE INDEX steps_changed ON steps (run_id, sequence, number);
CREATE INDEX steps_due ON steps (wait_until, run_id) WHERE status = 'waiting' AND wait_until IS NOT NULL;
-- The step whose error ended a run is searched among those that failed.
CREATE INDEX steps_failed ON steps (run_id, number) WHERE status = 'failed';

CREATE TABLE audit (
    id         {{if .Postgres}}BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY{{else}}INTEGER PRIMARY KEY AUTOINCREMENT{{end}},
    at         BIGINT NOT NULL,
    actor_kind TEXT NOT NULL,
    actor_name TEXT NOT NULL,
    action     TEXT NOT NULL,
    project    {{.Key}} NOT NULL,
    subject    {{.Key}} NOT NULL,
    reason     TEXT NOT NULL,
    detail     TEXT
);
CREATE INDEX audit_project ON audit (project, id);
CREATE INDEX audit_subject ON audit (project, subject, id);
-- Nothing changes entries.
-- +goose StatementBegin
{{- if .Postgres}}
CREATE FUNCTION audit_unchanged() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit entries cannot be changed';
END $$;
-- +goose StatementEnd
CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit
    FOR EACH ROW EXECUTE FUNCTION audit_unchanged();
{{- else}}
CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'audit entries cannot be changed');
END;
-- +goose StatementEnd
{{- end}}

CREATE TABLE workers (
    server_id    {{.Key}} NOT NULL PRIMARY KEY,
    contract     TEXT NOT NULL,
    address      TEXT NOT NULL,
    namespace    TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    projects     TEXT NOT NULL,
    started_at   BIGINT NOT NULL,
    beat_at      BIGINT NOT NULL,
    -- The projects whose task queues a worker does not poll now because its slots are in use, as JSON.
    busy         TEXT
);
CREATE INDEX workers_beat ON workers (beat_at);

-- The Temporal that has the runs: one row, none before the first comparison. A server that is connected to another Temporal by mistake does
-- not take runs for lost that it does not find there.
CREATE TABLE runs_cluster (
    one            {{if .Postgres}}SMALLINT{{else}}INTEGER{{end}} NOT NULL PRIMARY KEY CHECK (one = 1),
    address        TEXT NOT NULL,
    namespace      TEXT NOT NULL,
    namespace_id   TEXT NOT NULL,
    since          BIGINT NOT NULL,
    -- Executions in Temporal that ended before this time were searched for ones without a row; NULL before the first search.
    searched_until BIGINT,
    -- The time of the last comparison of the runs with Temporal: the database was in use then. NULL before the first one.
    compared_at    BIGINT,
    -- When a comparison found that the database was restored from a backup, and compared_at of the backup; NULL if none has.
    restored_at    BIGINT,
    restored_to    BIGINT,
    -- The open executions in Temporal that have no row and cannot be adopted, as JSON, as the last comparison found them; NULL before the first.
    foreign_runs   TEXT
);

-- The position of the newest event of each project. A transaction that accepts events holds the row, so that the order of positions is that
-- of the commits.
CREATE TABLE inboxes (
    project     {{.Key}} NOT NULL PRIMARY KEY REFERENCES projects (name),
    head        BIGINT NOT NULL,
    parked      BOOLEAN NOT NULL,
    received_at BIGINT NOT NULL
);
CREATE INDEX inboxes_news ON inboxes (received_at);

-- The owner of each dispatcher, and the position up to which it has routed events. Transactions that route hold the row; those that accept
-- events do not.
CREATE TABLE dispatchers (
    project       {{.Key}} NOT NULL PRIMARY KEY REFERENCES projects (name),
    task_queue    {{.Key}} NOT NULL,
    epoch         BIGINT NOT NULL,
    holder        TEXT NOT NULL,
    routed        BIGINT NOT NULL,
    pending       BIGINT NOT NULL,
    progressed_at BIGINT
);

-- Events never change: their states follow from the positions. Big columns come last.
CREATE TABLE events (
    project           {{.Key}} NOT NULL,
    position          BIGINT NOT NULL,
    id                {{.Key}} NOT NULL,
    source            {{.Key}} NOT NULL,
    type              {{.Key}} NOT NULL,
    subject           TEXT NOT NULL,
    occurred_at       BIGINT,
    data_content_type TEXT NOT NULL,
    data_schema       TEXT NOT NULL,
    data_base64       BOOLEAN NOT NULL,
    received_at       BIGINT NOT NULL,
    actor             TEXT NOT NULL,
    -- The sealed original of an event with marks, which routing and deliveries read; NULL without marks.
    original_key      {{.Key}},
    -- The span of the request that published the event, as in the header traceparent of W3C Trace Context; NULL without traces.
    traceparent       TEXT,
    -- The nanoseconds of an event's time below its microsecond, so that the time is given as it was published.
    occurred_nanos    BIGINT NOT NULL DEFAULT 0,
    extensions        TEXT,
    data              TEXT,
    original          {{.Bytes}},
    PRIMARY KEY (project, position)
);
CREATE UNIQUE INDEX events_id ON events (project, id, source);
CREATE INDEX events_type ON events (project, type, position);
CREATE INDEX events_source ON events (project, source, position);
CREATE INDEX events_received ON events (project, received_at, position);

-- The results of matching: one row for consecutive events with the same result. Events behind the last row are pending.
CREATE TABLE routings (
    project {{.Key}} NOT NULL,
    last    BIGINT NOT NULL,
    first   BIGINT NOT NULL,
    status  {{.Key}} NOT NULL,
    reason  TEXT NOT NULL,
    PRIMARY KEY (project, last)
){{.WithoutRowID}};
CREATE UNIQUE INDEX routings_status ON routings (project, status, last, first);

-- What routing has decided for events. due_at is NULL for a delivery that is finished, and for one that waits behind an earlier one of its
-- run. claimed_until is set while a process may be delivering it, claimed_by is the epoch of the last one. IDs are unique, which planners
-- know of a primary key without statistics: many are looked up at once.
CREATE TABLE deliveries (
    id            {{.Key}} NOT NULL PRIMARY KEY,
    project       {{.Key}} NOT NULL,
    position      BIGINT NOT NULL,
    kind          {{.Key}} NOT NULL,
    status        {{.Key}} NOT NULL,
    due_at        BIGINT,
    claimed_until BIGINT,
    claimed_by    BIGINT NOT NULL,
    attempts      BIGINT NOT NULL,
    workflow      TEXT NOT NULL,
    version       TEXT NOT NULL,
    run_id        {{.Key}} NOT NULL,
    listener      TEXT NOT NULL,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    reason        TEXT NOT NULL,
    positions     TEXT NOT NULL
);
CREATE INDEX deliveries_event ON deliveries (project, position, id);
CREATE INDEX deliveries_due ON deliveries (project, due_at, position) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_news ON deliveries (due_at, project) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_lane ON deliveries (run_id, position, id) WHERE status = 'pending' AND kind = 'wake';
CREATE INDEX deliveries_claimed ON deliveries (project) WHERE claimed_until IS NOT NULL;
CREATE INDEX deliveries_dead ON deliveries (project, position) WHERE status = 'dead';
-- Whether deliveries to a run are pending.
CREATE INDEX deliveries_open ON deliveries (run_id) WHERE status = 'pending';
-- The deliveries to a run.
CREATE INDEX deliveries_run ON deliveries (run_id, position, id);

-- The events of deliveries of several events, but for the last, which the delivery has.
CREATE TABLE delivery_events (
    project  {{.Key}} NOT NULL,
    position BIGINT NOT NULL,
    delivery {{.Key}} NOT NULL,
    PRIMARY KEY (project, position, delivery)
){{.WithoutRowID}};

-- Runs that wait for events.
CREATE TABLE listeners (
    project {{.Key}} NOT NULL,
    id      {{.Key}} NOT NULL,
    run_id  {{.Key}} NOT NULL,
    since   BIGINT NOT NULL,
    spec    TEXT NOT NULL,
    PRIMARY KEY (project, id)
);
CREATE INDEX listeners_run ON listeners (run_id);

-- Listeners are found by their filters: by the type, the shape of a filter, and the digest of the values that it expects. Those without a type
-- take events of all types; those without a shape are read for each event of the type.
CREATE TABLE listener_types (
    project  {{.Key}} NOT NULL,
    type     {{.Key}} NOT NULL,
    listener {{.Key}} NOT NULL,
    shape    {{.Key}} NOT NULL DEFAULT '',
    value    {{.Key}} NOT NULL DEFAULT '',
    PRIMARY KEY (project, type, shape, value, listener),
    FOREIGN KEY (project, listener) REFERENCES listeners (project, id) ON DELETE CASCADE
){{.WithoutRowID}};
CREATE INDEX listener_types_listener ON listener_types (project, listener);

-- What starts a workflow, from its newest version.
CREATE TABLE triggers (
    project      {{.Key}} NOT NULL,
    workflow     {{.Key}} NOT NULL,
    version      {{.Key}} NOT NULL,
    hash         {{.Key}} NOT NULL,
    since        BIGINT NOT NULL,
    published_at BIGINT NOT NULL,
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

-- Sets of events of triggers that need several, and do not have all yet. The key is too long for an index, so its hash is indexed.
CREATE TABLE partials (
    project   {{.Key}} NOT NULL,
    workflow  {{.Key}} NOT NULL,
    key_hash  {{.Key}} NOT NULL,
    key       TEXT NOT NULL,
    positions TEXT NOT NULL,
    PRIMARY KEY (project, workflow, key_hash),
    FOREIGN KEY (project, workflow) REFERENCES triggers (project, workflow) ON DELETE CASCADE
);

-- The owners of the dispatchers over time.
CREATE TABLE owner_changes (
    project         {{.Key}} NOT NULL,
    task_queue      {{.Key}} NOT NULL,
    epoch           BIGINT NOT NULL,
    execution       {{.Key}} NOT NULL,
    at              BIGINT NOT NULL,
    holder          TEXT NOT NULL,
    how             TEXT NOT NULL,
    previous_epoch  BIGINT NOT NULL,
    previous_holder TEXT NOT NULL,
    ended           TEXT NOT NULL,
    reason          TEXT NOT NULL,
    PRIMARY KEY (project, task_queue, epoch, execution)
);

-- Runs that come from other runs: by a replay, or as a child. Most do not, so this is not in their rows.
CREATE TABLE run_links (
    run_id        {{.Key}} NOT NULL PRIMARY KEY,
    replay_of     {{.Key}} NOT NULL,
    parent        {{.Key}} NOT NULL,
    path          TEXT NOT NULL,
    depth         BIGINT NOT NULL,
    -- Whether an event that reports a failure has started the run, or the run that started it: its failure starts no workflow.
    after_failure BOOLEAN NOT NULL DEFAULT FALSE
);
CREATE INDEX run_links_replays ON run_links (replay_of, run_id) WHERE replay_of <> '';
CREATE INDEX run_links_children ON run_links (parent, run_id) WHERE parent <> '';

-- Runs without progress, with the cause. A verdict is valid while its run has the same sequence: each change of a run increases it, and
-- the row is removed a moment later.
CREATE TABLE run_verdicts (
    run_id     {{.Key}} NOT NULL PRIMARY KEY,
    project    {{.Key}} NOT NULL,
    code       {{.Key}} NOT NULL,
    created_at BIGINT NOT NULL,
    sequence   BIGINT NOT NULL,
    since      BIGINT NOT NULL,
    checked_at BIGINT NOT NULL,
    detail     TEXT NOT NULL,
    advice     TEXT NOT NULL,
    workflow   {{.Key}} NOT NULL DEFAULT '',
    cause      {{.Key}} NOT NULL DEFAULT ''
);
CREATE INDEX run_verdicts_code ON run_verdicts (project, code, created_at, run_id);
CREATE INDEX run_verdicts_created ON run_verdicts (project, created_at, run_id);
CREATE INDEX run_verdicts_workflow ON run_verdicts (project, workflow, created_at, run_id, code);

-- The last failed workflow task of a run, as its worker reported it: Temporal's SDK reports only the first failure to Temporal.
CREATE TABLE task_failures (
    run_id      {{.Key}} NOT NULL PRIMARY KEY,
    at          BIGINT NOT NULL,
    message     TEXT NOT NULL,
    -- The cause in a word, the worker's build, another build that failed in the same way, and when the first of consecutive failures was.
    cause       {{.Key}} NOT NULL DEFAULT '',
    build       {{.Key}} NOT NULL DEFAULT '',
    other_build {{.Key}} NOT NULL DEFAULT '',
    since       BIGINT
);

-- One action on many runs. The counts change in the transactions that change what they count.
CREATE TABLE batches (
    id            {{.Key}} NOT NULL PRIMARY KEY,
    project       {{.Key}} NOT NULL REFERENCES projects (name),
    request_id    {{.Key}} NOT NULL,
    fingerprint   TEXT NOT NULL,
    action        TEXT NOT NULL,
    version       TEXT NOT NULL,
    reason        TEXT NOT NULL,
    rate          DOUBLE PRECISION NOT NULL,
    actor_kind    TEXT NOT NULL,
    actor_name    TEXT NOT NULL,
    created_at    BIGINT NOT NULL,
    ended_at      BIGINT,
    paused        BOOLEAN NOT NULL,
    -- Whether all runs of the filter have items; else the last one that has.
    selected      BOOLEAN NOT NULL,
    selected_at   BIGINT,
    selected_run  TEXT NOT NULL,
    total         BIGINT NOT NULL,
    succeeded     BIGINT NOT NULL,
    refused       BIGINT NOT NULL,
    failed        BIGINT NOT NULL,
    runs_ended_at BIGINT,
    outcomes      TEXT NOT NULL DEFAULT '{}',
    waiting       TEXT NOT NULL,
    filter        TEXT
);
CREATE UNIQUE INDEX batches_request ON batches (project, request_id);
CREATE INDEX batches_newest ON batches (project, id);
CREATE INDEX batches_active ON batches (id) WHERE ended_at IS NULL AND NOT paused;
CREATE INDEX batches_runs_open ON batches (id) WHERE action = 'replay' AND runs_ended_at IS NULL;

CREATE TABLE batch_items (
    batch      {{.Key}} NOT NULL,
    number     BIGINT NOT NULL,
    run_id     {{.Key}} NOT NULL,
    status     {{.Key}} NOT NULL,
    -- Whether a process has begun with the item. It may have ended before it wrote the outcome.
    begun      BOOLEAN NOT NULL,
    ended_at   BIGINT,
    new_run_id TEXT NOT NULL,
    error      TEXT NOT NULL,
    -- The outcomes of the runs that the batch started, as JSON. runs_ended_at is when the last of them had ended.
    outcome    {{.Key}} NOT NULL DEFAULT '',
    PRIMARY KEY (batch, number)
);
CREATE UNIQUE INDEX batch_items_run ON batch_items (run_id, batch);
CREATE INDEX batch_items_status ON batch_items (batch, status, number);
CREATE INDEX batch_items_open ON batch_items (batch, number) WHERE new_run_id <> '' AND outcome = '';
CREATE INDEX batch_items_started ON batch_items (batch, new_run_id) WHERE new_run_id <> '';

-- Tokens of the API. Only a hash of their text is kept.
CREATE TABLE tokens (
    id           {{.Key}} NOT NULL PRIMARY KEY,
    name         {{.Key}} NOT NULL,
    hash         {{.Key}} NOT NULL,
    roles        TEXT NOT NULL,
    creator      TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT,
    last_used_at BIGINT,
    revoked_at   BIGINT
);
CREATE INDEX tokens_newest ON tokens (created_at, id);
CREATE INDEX tokens_name ON tokens (name) WHERE revoked_at IS NULL;

-- The quotas of projects; 0 is no limit. A transaction that grants slots locks the project's row. accepted numbers the runs that requested a
-- slot.
CREATE TABLE quotas (
    project         {{.Key}} NOT NULL PRIMARY KEY,
    concurrent_runs BIGINT NOT NULL,
    steps           BIGINT NOT NULL,
    period_seconds  BIGINT NOT NULL,
    accepted        BIGINT NOT NULL
);

-- How many steps were granted in the period that began at begun_at: of the quota, and beyond it to resumed runs. A transaction that grants
-- steps locks the project's row.
CREATE TABLE quota_periods (
    project  {{.Key}} NOT NULL PRIMARY KEY,
    begun_at BIGINT NOT NULL,
    granted  BIGINT NOT NULL,
    extra    BIGINT NOT NULL
);

-- What open runs took in the period that began at begun_at, how many steps they had entered before, and all that they were granted.
-- resumed_in is the period in which an operator has allowed them more.
CREATE TABLE quota_grants (
    run_id     {{.Key}} NOT NULL PRIMARY KEY,
    project    {{.Key}} NOT NULL,
    begun_at   BIGINT NOT NULL,
    taken      BIGINT NOT NULL,
    entered    BIGINT NOT NULL,
    total      BIGINT NOT NULL,
    resumed_in BIGINT
);

-- Runs whose end another run awaits and has not received yet.
CREATE TABLE run_awaited (
    run_id   {{.Key}} NOT NULL PRIMARY KEY,
    parent   {{.Key}} NOT NULL,
    call_key TEXT NOT NULL
);
CREATE INDEX run_awaited_parents ON run_awaited (parent);

-- The sealed originals of the marks in runs and steps. Rows are shown as they are; an original is read for callers that may see more.
CREATE TABLE originals (
    run_id {{.Key}} NOT NULL,
    what   {{.Key}} NOT NULL,
    number BIGINT NOT NULL,
    key_id {{.Key}} NOT NULL,
    sealed {{.Bytes}} NOT NULL,
    PRIMARY KEY (run_id, what, number)
);

-- Runs that another engine executed, beside their rows: where they ran, and the source's row, waits and snapshots as JSON. The fingerprint
-- shows whether the source has changed; settled_at is when an open run was ended because its engine is gone.
CREATE TABLE run_legacy (
    run_id      {{.Key}} NOT NULL PRIMARY KEY,
    engine      TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    settled_at  BIGINT,
    original    TEXT NOT NULL
);

-- How far the database of another engine has been imported. The name has no credentials. marks are the newest values of its time columns up
-- to which all rows were read, later those that replace them when they are old enough, walked the ID that the current round has reached:
-- values of the source as JSON. rounds is how often all of it was read.
CREATE TABLE legacy_sources (
    name     {{.Key}} NOT NULL PRIMARY KEY,
    marks    TEXT NOT NULL,
    later    TEXT NOT NULL,
    noted_at BIGINT NOT NULL,
    walked   TEXT NOT NULL,
    rounds   BIGINT NOT NULL
);

-- Imported runs that retention has deleted: they are not imported again.
CREATE TABLE legacy_removed (
    run_id {{.Key}} NOT NULL PRIMARY KEY
);

CREATE TABLE step_summaries (
    run_id      {{.Key}} NOT NULL PRIMARY KEY,
    from_number BIGINT NOT NULL,
    to_number   BIGINT NOT NULL,
    open_steps  TEXT,
    position    BIGINT NOT NULL
);

CREATE TABLE task_summaries (
    run_id    {{.Key}} NOT NULL,
    pointer   {{.Key}} NOT NULL,
    task      TEXT NOT NULL,
    kind      {{.Key}} NOT NULL,
    count     BIGINT NOT NULL,
    completed BIGINT NOT NULL,
    failed    BIGINT NOT NULL,
    skipped   BIGINT NOT NULL,
    canceled  BIGINT NOT NULL,
    shortest  BIGINT NOT NULL,
    longest   BIGINT NOT NULL,
    total     BIGINT NOT NULL,
    sequence  BIGINT NOT NULL,
    PRIMARY KEY (run_id, pointer)
);

-- Poison runs that the platform has ended or is about to end. Those of an hour count against the limit of their project.
CREATE TABLE poison_endings (
    run_id  {{.Key}} NOT NULL PRIMARY KEY,
    project {{.Key}} NOT NULL,
    at      BIGINT NOT NULL
);
CREATE INDEX poison_endings_project ON poison_endings (project, at);

-- Large payloads of Temporal, which keeps references to them. A payload is stored for each run whose history refers to it, for as long as the
-- run has a row. The digest is the SHA-256 of the value, which is sealed like everything that Temporal stores.
CREATE TABLE payloads (
    run_id     {{.Key}} NOT NULL,
    digest     {{.Key}} NOT NULL,
    created_at BIGINT NOT NULL,
    value      {{.Bytes}} NOT NULL,
    PRIMARY KEY (run_id, digest)
);
{{- if .Postgres}}
-- Sealed values do not compress.
ALTER TABLE payloads ALTER COLUMN value SET STORAGE EXTERNAL;
{{- end}}

-- Runs whose rows may be behind Temporal, for workers to repair: one request per run. claim increases with each claim and generation with each
-- request, so that a lost claim ends nothing and a request that arrives meanwhile stays.
CREATE TABLE run_repairs (
    run_id       {{.Key}} NOT NULL PRIMARY KEY,
    requested_at BIGINT NOT NULL,
    due_at       BIGINT NOT NULL,
    reason       TEXT NOT NULL,
    behind       BOOLEAN NOT NULL,
    forced       BOOLEAN NOT NULL,
    correction   TEXT NOT NULL,
    attempts     BIGINT NOT NULL,
    done         TEXT NOT NULL,
    problem      TEXT NOT NULL,
    claim        BIGINT NOT NULL,
    generation   BIGINT NOT NULL
);
CREATE INDEX run_repairs_due ON run_repairs (due_at);

-- Sessions of browsers. Only a hash of their secret is kept. A session ends idle microseconds after its last use, at expires_at, or at ended_at.
CREATE TABLE sessions (
    id           {{.Key}} NOT NULL PRIMARY KEY,
    hash         {{.Key}} NOT NULL,
    token        {{.Key}} NOT NULL,
    created_at   BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    idle         BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    ended_at     BIGINT
);
CREATE INDEX sessions_newest ON sessions (created_at, id);

-- The problems that were found, and what operators did about them. content is the problem as it was last found, as JSON. A problem that no
-- longer exists has the time at which that was found, and is deleted a day later. revision increases with each change by an operator, and
-- when the problem occurs again.
CREATE TABLE problems (
    id              {{.Key}} NOT NULL PRIMARY KEY,
    project         {{.Key}} NOT NULL,
    first_seen      BIGINT NOT NULL,
    last_seen       BIGINT NOT NULL,
    resolved_at     BIGINT,
    revision        BIGINT NOT NULL,
    acknowledged_at BIGINT,
    acknowledger    TEXT NOT NULL,
    snooze_until    BIGINT,
    snooze_count    BIGINT NOT NULL,
    owner           TEXT NOT NULL,
    note            TEXT NOT NULL,
    content         TEXT NOT NULL
);
CREATE INDEX problems_project ON problems (project, id);

-- Named filters of the list of runs. The owner created the view, the updater changed it last; both are actors, by kind and name. query has
-- the filter, the order and the columns, as JSON.
CREATE TABLE views (
    id           {{.Key}} NOT NULL PRIMARY KEY,
    project      {{.Key}} NOT NULL REFERENCES projects (name) ON DELETE CASCADE,
    owner_kind   {{.Key}} NOT NULL,
    owner_name   {{.Key}} NOT NULL,
    updater_kind TEXT NOT NULL,
    updater_name TEXT NOT NULL,
    name         {{.Key}} NOT NULL,
    query        TEXT NOT NULL,
    shared       BOOLEAN NOT NULL,
    revision     BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX views_owner ON views (project, owner_kind, owner_name, name);
CREATE UNIQUE INDEX views_shared ON views (project, name) WHERE shared;

-- Outages of Temporal, as each server saw them. A server confirms an open outage every few seconds (seen_at); one that was killed leaves
-- ended_at empty, and its outage is read as ended when it was last confirmed.
CREATE TABLE outages (
    server   {{.Key}} NOT NULL,
    since    BIGINT NOT NULL,
    kind     TEXT NOT NULL,
    seen_at  BIGINT NOT NULL,
    ended_at BIGINT,
    PRIMARY KEY (server, since)
);
CREATE INDEX outages_newest ON outages (since);

-- The labels of runs. They have the project and the time of their run's creation, so that the runs with a label are read from the
-- index in the order of lists.
CREATE TABLE run_labels (
    run_id     {{.Key}} NOT NULL,
    name       {{.Key}} NOT NULL,
    value      {{.Key}} NOT NULL,
    project    {{.Key}} NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (run_id, name)
);
CREATE INDEX run_labels_value ON run_labels (project, name, value, created_at, run_id);

-- Whether the platform starts new runs: one row.
CREATE TABLE maintenance (
    id     BIGINT PRIMARY KEY,
    active BOOLEAN NOT NULL,
    reason TEXT NOT NULL,
    actor  TEXT NOT NULL,
    since  BIGINT
);
INSERT INTO maintenance (id, active, reason, actor) VALUES (1, FALSE, '', '');

-- Receivers of the events of projects. url is shown, sealed has the address and the secrets. Events behind since become deliveries. A webhook
-- with paused_at is paused; failing_since is the first failed attempt since the last one that succeeded.
CREATE TABLE webhooks (
    id             {{.Key}} NOT NULL PRIMARY KEY,
    project        {{.Key}} NOT NULL REFERENCES projects (name) ON DELETE CASCADE,
    name           {{.Key}} NOT NULL,
    url            TEXT NOT NULL,
    format         TEXT NOT NULL,
    filter         TEXT NOT NULL,
    sealed         {{.Bytes}} NOT NULL,
    since          BIGINT NOT NULL,
    paused_at      BIGINT,
    pause_reason   TEXT NOT NULL,
    disabled       BOOLEAN NOT NULL,
    failing_since  BIGINT,
    last_error     TEXT NOT NULL,
    succeeded_at   BIGINT,
    previous_until BIGINT,
    creator        TEXT NOT NULL,
    updater        TEXT NOT NULL,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL
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
    position      BIGINT NOT NULL,
    status        {{.Key}} NOT NULL,
    due_at        BIGINT,
    claimed_until BIGINT,
    claim         TEXT NOT NULL,
    attempts      BIGINT NOT NULL,
    retry_from    BIGINT NOT NULL,
    failures      BIGINT NOT NULL,
    http_status   BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    event_id      TEXT NOT NULL,
    event_source  TEXT NOT NULL,
    event_type    TEXT NOT NULL,
    reason        TEXT NOT NULL,
    history       TEXT,
    event         TEXT NOT NULL
);
CREATE INDEX webhook_deliveries_newest ON webhook_deliveries (webhook, created_at, id);
CREATE INDEX webhook_deliveries_status ON webhook_deliveries (webhook, status, created_at, id);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_claimed ON webhook_deliveries (webhook) WHERE claimed_until IS NOT NULL;
CREATE INDEX webhook_deliveries_finished ON webhook_deliveries (updated_at) WHERE status <> 'pending';

-- Events that report failures, committed with what they report, until they are moved into the inbox of their project.
CREATE TABLE event_outbox (
    project     {{.Key}} NOT NULL,
    occurred_at BIGINT NOT NULL,
    id          {{.Key}} NOT NULL,
    type        TEXT NOT NULL,
    source      TEXT NOT NULL,
    subject     TEXT NOT NULL,
    extensions  TEXT,
    data        TEXT NOT NULL,
    PRIMARY KEY (project, occurred_at, id)
);

-- The events that an open run has taken in a listen task: later ones do not take them again.
CREATE TABLE taken_events (
    run_id   {{.Key}} NOT NULL,
    position BIGINT NOT NULL,
    PRIMARY KEY (run_id, position)
){{.WithoutRowID}};

-- What a run could not do completely. A warning changes no status.
CREATE TABLE run_warnings (
    run_id {{.Key}} NOT NULL,
    code   {{.Key}} NOT NULL,
    detail TEXT NOT NULL,
    at     BIGINT NOT NULL,
    PRIMARY KEY (run_id, code)
){{.WithoutRowID}};

-- The server processes, of all roles. A record that is neither renewed nor removed is that of a lost server.
CREATE TABLE servers (
    id         {{.Key}} NOT NULL PRIMARY KEY,
    instance   TEXT NOT NULL,
    roles      TEXT NOT NULL,
    version    TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    beat_at    BIGINT NOT NULL
);

-- The keys that have sealed values: since when and until when a process had each as its active key. An open run that was made before last_at
-- may have values sealed with it.
CREATE TABLE sealing_keys (
    id          {{.Key}} NOT NULL PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    first_at    BIGINT NOT NULL,
    last_at     BIGINT NOT NULL
);

INSERT INTO schema_compat (version, oldest) VALUES (1, 1);

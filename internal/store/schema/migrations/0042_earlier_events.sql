-- +goose Up
-- The position after which a run takes events: that of the newest event at the run's acceptance. NULL in runs that an earlier release accepted.
ALTER TABLE runs ADD COLUMN events_after BIGINT;

-- The events that an open run has taken in a listen task: later ones do not take them again.
CREATE TABLE taken_events (
    run_id   {{.Key}} NOT NULL,
    position BIGINT  NOT NULL,
    PRIMARY KEY (run_id, position)
){{.WithoutRowID}};

-- What a run could not do completely. A warning changes no status.
CREATE TABLE run_warnings (
    run_id {{.Key}} NOT NULL,
    code   {{.Key}} NOT NULL,
    detail TEXT    NOT NULL,
    at     BIGINT  NOT NULL,
    PRIMARY KEY (run_id, code)
){{.WithoutRowID}};

INSERT INTO schema_compat (version, oldest) VALUES (42, 7);

-- +goose Up
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

INSERT INTO schema_compat (version, oldest) VALUES (36, 7);

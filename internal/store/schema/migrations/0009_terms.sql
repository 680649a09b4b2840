-- +goose Up

-- The words by which runs are found: those of the values of their labels and of their request IDs (1), of their errors (2), and the names of the
-- tasks at which they failed (4); kinds is the sum. They are made of the rows as they are shown, so that no sensitive value is among them.
CREATE TABLE run_terms (
    run_id     {{.Key}} NOT NULL,
    term       {{.Key}} NOT NULL,
    kinds      BIGINT NOT NULL,
    project    {{.Key}} NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (run_id, term)
){{.WithoutRowID}};
CREATE INDEX run_terms_found ON run_terms (project, term, created_at, run_id, kinds);

-- Runs from before are found by the values of their labels.
INSERT INTO run_terms (run_id, term, kinds, project, created_at)
SELECT DISTINCT run_id, lower(substr(value, 1, 64)), 1, project, created_at FROM run_labels;

-- The tasks of the newest version of each workflow.
CREATE TABLE workflow_tasks (
    project  {{.Key}} NOT NULL,
    workflow {{.Key}} NOT NULL,
    pointer  {{.Key}} NOT NULL,
    name     TEXT NOT NULL,
    PRIMARY KEY (project, workflow, pointer)
){{.WithoutRowID}};

-- Open runs by what they wait for.
CREATE INDEX runs_waiting ON runs (project, waiting_kind, created_at, id) WHERE waiting_kind <> '';

INSERT INTO schema_compat (version, oldest) VALUES (9, 1);

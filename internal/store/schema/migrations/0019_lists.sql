-- +goose Up
-- Verdicts by workflow. Those that an older binary gives have none: they are looked through for every workflow.
ALTER TABLE run_verdicts ADD COLUMN workflow {{.Key}} NOT NULL DEFAULT '';
UPDATE run_verdicts SET workflow = COALESCE((SELECT r.workflow FROM runs r WHERE r.id = run_verdicts.run_id), '');
CREATE INDEX run_verdicts_workflow ON run_verdicts (project, workflow, created_at, run_id, code);

{{if .Postgres -}}
-- The few runs of which a request ID begins with a text lie apart in the table: their order is read from the index.
CREATE UNIQUE INDEX runs_requested ON runs (project, request_id) INCLUDE (created_at, id, status);
DROP INDEX runs_request;

{{end -}}
-- Runs whose ID does not begin with the milliseconds of their creation, give or take ten minutes, as that of a UUIDv7 does.
CREATE INDEX runs_untimed ON runs (project, id, created_at)
    WHERE substr(id, 1, 8) || substr(id, 10, 4) NOT BETWEEN
{{- if .Postgres}} lpad(to_hex(created_at / 1000 - 600000), 12, '0') AND lpad(to_hex(created_at / 1000 + 600000), 12, '0')
{{- else}} printf('%012x', created_at / 1000 - 600000) AND printf('%012x', created_at / 1000 + 600000){{end}};

INSERT INTO schema_compat (version, oldest) VALUES (19, 7);

-- +goose Up
-- Large payloads of Temporal, which keeps references to them: what a history of a run refers to is here under the run's ID for as long
-- as the run has a row. The digest is the SHA-256 of the value, which is sealed like everything that Temporal keeps.
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

INSERT INTO schema_compat (version, oldest) VALUES (26, 7);

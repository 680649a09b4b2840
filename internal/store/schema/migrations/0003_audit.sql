-- +goose Up
CREATE TABLE audit (
    id         {{if .Postgres}}BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY{{else}}INTEGER PRIMARY KEY AUTOINCREMENT{{end}},
    at         BIGINT NOT NULL,
    actor_kind TEXT   NOT NULL,
    actor_name TEXT   NOT NULL,
    action     TEXT   NOT NULL,
    project    {{.Key}} NOT NULL,
    subject    {{.Key}} NOT NULL,
    reason     TEXT   NOT NULL,
    detail     TEXT
);
CREATE INDEX audit_project ON audit (project, id);
CREATE INDEX audit_subject ON audit (project, subject, id);

-- Entries are kept as they were written: nothing edits them.
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

INSERT INTO schema_compat (version, oldest) VALUES (3, 3);

-- +goose Up
CREATE TABLE audit (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    at         BIGINT NOT NULL,
    actor_kind TEXT   NOT NULL,
    actor_name TEXT   NOT NULL,
    action     TEXT   NOT NULL,
    project    TEXT   NOT NULL,
    subject    TEXT   NOT NULL,
    reason     TEXT   NOT NULL,
    detail     TEXT
);
CREATE INDEX audit_project ON audit (project, id);
CREATE INDEX audit_subject ON audit (project, subject, id);

-- Entries are kept as they were written: nothing edits them.
-- +goose StatementBegin
CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'audit entries cannot be changed');
END;
-- +goose StatementEnd

INSERT INTO schema_compat (version, oldest) VALUES (3, 3);

-- +goose Up
-- Listeners are found by their filters: by the shape of one, and the digest of the values that it expects. Rows without a shape, as releases
-- before this migration write them, are read for each event of the type.
{{if .Postgres}}
ALTER TABLE listener_types ADD COLUMN shape {{.Key}} NOT NULL DEFAULT '';
ALTER TABLE listener_types ADD COLUMN value {{.Key}} NOT NULL DEFAULT '';
ALTER TABLE listener_types DROP CONSTRAINT listener_types_pkey;
ALTER TABLE listener_types ADD PRIMARY KEY (project, type, shape, value, listener);
{{else}}
CREATE TABLE listener_types_new (
    project  {{.Key}} NOT NULL,
    type     {{.Key}} NOT NULL,
    listener {{.Key}} NOT NULL,
    shape    {{.Key}} NOT NULL DEFAULT '',
    value    {{.Key}} NOT NULL DEFAULT '',
    PRIMARY KEY (project, type, shape, value, listener),
    FOREIGN KEY (project, listener) REFERENCES listeners (project, id) ON DELETE CASCADE
){{.WithoutRowID}};
INSERT INTO listener_types_new (project, type, listener) SELECT project, type, listener FROM listener_types;
DROP TABLE listener_types;
ALTER TABLE listener_types_new RENAME TO listener_types;
CREATE INDEX listener_types_listener ON listener_types (project, listener);
{{end}}
INSERT INTO schema_compat (version, oldest) VALUES (41, 7);

-- +goose Up
-- What runs of each version can work on: a binary whose newest migration is M works on this database as long as the
-- row of the newest version has oldest <= M.
CREATE TABLE schema_compat (
    version BIGINT NOT NULL PRIMARY KEY,
    oldest  BIGINT NOT NULL
);

CREATE TABLE projects (
    name        {{.Key}}   NOT NULL PRIMARY KEY,
    description TEXT   NOT NULL,
    created_at  BIGINT NOT NULL
);

CREATE TABLE documents (
    hash      {{.Key}} NOT NULL PRIMARY KEY,
    canonical TEXT NOT NULL
);

CREATE TABLE workflows (
    project        {{.Key}}   NOT NULL REFERENCES projects (name),
    name           {{.Key}}   NOT NULL,
    short_name     {{.Key}}   NOT NULL,
    title          TEXT   NOT NULL,
    summary        TEXT   NOT NULL,
    state          {{.Key}}   NOT NULL,
    latest_version {{.Key}}   NOT NULL,
    pause_reason   TEXT   NOT NULL,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL,
    PRIMARY KEY (project, name)
);
CREATE INDEX workflows_short_name ON workflows (project, short_name, name);

CREATE TABLE drafts (
    project  {{.Key}}   NOT NULL,
    workflow {{.Key}}   NOT NULL,
    title    TEXT   NOT NULL,
    summary  TEXT   NOT NULL,
    source   TEXT   NOT NULL,
    saved_at BIGINT NOT NULL,
    PRIMARY KEY (project, workflow),
    FOREIGN KEY (project, workflow) REFERENCES workflows (project, name)
);

CREATE TABLE versions (
    project      {{.Key}}   NOT NULL,
    workflow     {{.Key}}   NOT NULL,
    version      {{.Key}}   NOT NULL,
    hash         {{.Key}}   NOT NULL REFERENCES documents (hash),
    title        TEXT   NOT NULL,
    summary      TEXT   NOT NULL,
    publisher    TEXT   NOT NULL,
    published_at BIGINT NOT NULL,
    source       TEXT   NOT NULL,
    PRIMARY KEY (project, workflow, version),
    FOREIGN KEY (project, workflow) REFERENCES workflows (project, name)
);
CREATE INDEX versions_newest ON versions (project, workflow, published_at, version);

INSERT INTO projects (name, description, created_at)
VALUES ('default', 'The project that exists from the start.',
{{- if .Postgres}} CAST(EXTRACT(EPOCH FROM now()) * 1000000 AS BIGINT)
{{- else}} CAST(strftime('%s', 'now') AS BIGINT) * 1000000{{end}});

INSERT INTO schema_compat (version, oldest) VALUES (1, 1);

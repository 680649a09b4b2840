-- +goose Up
-- Named filters of the list of runs. The owner created the view, the updater changed it last; both are actors, by kind and name. query has
-- the filter, the order and the columns, as JSON.
CREATE TABLE views (
    id           {{.Key}} NOT NULL PRIMARY KEY,
    project      {{.Key}} NOT NULL REFERENCES projects (name) ON DELETE CASCADE,
    owner_kind   {{.Key}} NOT NULL,
    owner_name   {{.Key}} NOT NULL,
    updater_kind TEXT    NOT NULL,
    updater_name TEXT    NOT NULL,
    name         {{.Key}} NOT NULL,
    query        TEXT    NOT NULL,
    shared       BOOLEAN NOT NULL,
    revision     BIGINT  NOT NULL,
    updated_at   BIGINT  NOT NULL
);
CREATE UNIQUE INDEX views_owner ON views (project, owner_kind, owner_name, name);
CREATE UNIQUE INDEX views_shared ON views (project, name) WHERE shared;

INSERT INTO schema_compat (version, oldest) VALUES (34, 7);

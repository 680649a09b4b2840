-- +goose Up

-- The texts that documents refer to, by the hash of their content. Versions and functions share them, and they are never deleted.
CREATE TABLE resources (
    hash    {{.Key}} NOT NULL PRIMARY KEY,
    content TEXT NOT NULL
);

-- What a published version refers to. The hash of the version covers the hashes of its resources.
CREATE TABLE version_resources (
    project   {{.Key}} NOT NULL,
    workflow  {{.Key}} NOT NULL,
    version   {{.Key}} NOT NULL,
    uri       {{.Key}} NOT NULL,
    hash      {{.Key}} NOT NULL REFERENCES resources (hash),
    size      BIGINT NOT NULL,
    loaded_at BIGINT NOT NULL,
    PRIMARY KEY (project, workflow, version, uri),
    FOREIGN KEY (project, workflow, version) REFERENCES versions (project, workflow, version)
);
CREATE INDEX version_resources_uri ON version_resources (project, uri, workflow, version);

-- The catalog of the project: functions that its workflows call as name:version@default.
CREATE TABLE functions (
    project      {{.Key}} NOT NULL REFERENCES projects (name),
    name         {{.Key}} NOT NULL,
    version      {{.Key}} NOT NULL,
    hash         {{.Key}} NOT NULL REFERENCES resources (hash),
    size         BIGINT NOT NULL,
    publisher    TEXT NOT NULL,
    published_at BIGINT NOT NULL,
    PRIMARY KEY (project, name, version)
);

INSERT INTO schema_compat (version, oldest) VALUES (4, 1);

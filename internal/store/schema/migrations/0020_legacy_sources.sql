-- +goose Up
-- How far an older engine's database has been read that is followed. Its name has no credentials. marks are the newest values of its
-- columns of times up to which all rows were read, later those that take their place when they are old enough, walked the ID at which
-- the round stands: values as the source has them, as JSON. rounds are how often all of it was read.
CREATE TABLE legacy_sources (
    name     {{.Key}} NOT NULL PRIMARY KEY,
    marks    TEXT   NOT NULL,
    later    TEXT   NOT NULL,
    noted_at BIGINT NOT NULL,
    walked   TEXT   NOT NULL,
    rounds   BIGINT NOT NULL
);

-- Imported runs that were deleted because they are not to be kept: they are not imported again.
CREATE TABLE legacy_removed (
    run_id {{.Key}} NOT NULL PRIMARY KEY
);

INSERT INTO schema_compat (version, oldest) VALUES (20, 7);

-- +goose Up
-- Large payloads of Temporal, which keeps references to them: what a history of a run refers to is here under the run's ID for as long
-- as the run has a row. The digest is the SHA-256 of the value, which is sealed like everything that Temporal keeps.
CREATE TABLE payloads (
    run_id     TEXT COLLATE "C" NOT NULL,
    digest     TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    value      BYTEA NOT NULL,
    PRIMARY KEY (run_id, digest)
);
-- Sealed values do not compress.
ALTER TABLE payloads ALTER COLUMN value SET STORAGE EXTERNAL;

INSERT INTO schema_compat (version, oldest) VALUES (26, 7);

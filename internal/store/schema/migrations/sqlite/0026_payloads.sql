-- +goose Up
-- Large payloads of Temporal, which keeps references to them: what a history of a run refers to is here under the run's ID for as long
-- as the run has a row. The digest is the SHA-256 of the value, which is sealed like everything that Temporal keeps.
CREATE TABLE payloads (
    run_id     TEXT NOT NULL,
    digest     TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    value      BLOB NOT NULL,
    PRIMARY KEY (run_id, digest)
);

INSERT INTO schema_compat (version, oldest) VALUES (26, 7);

-- +goose Up
-- The keys that have sealed values: since when and until when a process had each as its active key. An open run that was made before last_at
-- may have values sealed with it.
CREATE TABLE sealing_keys (
    id          {{.Key}} NOT NULL PRIMARY KEY,
    fingerprint TEXT   NOT NULL,
    first_at    BIGINT NOT NULL,
    last_at     BIGINT NOT NULL
);

INSERT INTO schema_compat (version, oldest) VALUES (54, 7);

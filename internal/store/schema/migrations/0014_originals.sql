-- +goose Up
-- What the marks in runs and steps stand for, sealed. Rows are shown as they are; this is read where somebody may see more. Of a
-- row that an older program writes nothing is here.
CREATE TABLE originals (
    run_id {{.Key}} NOT NULL,
    what   {{.Key}} NOT NULL,
    number BIGINT NOT NULL,
    key_id {{.Key}} NOT NULL,
    sealed {{.Bytes}} NOT NULL,
    PRIMARY KEY (run_id, what, number)
);

ALTER TABLE runs ADD COLUMN redacted BOOLEAN NOT NULL DEFAULT FALSE;

INSERT INTO schema_compat (version, oldest) VALUES (14, 7);

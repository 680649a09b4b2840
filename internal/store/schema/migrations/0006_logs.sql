-- +goose Up

-- What the attempts of programs have printed: the end of each stream, and how much was printed before it. Sensitive values are replaced.
CREATE TABLE attempt_logs (
    run_id       {{.Key}} NOT NULL,
    step         BIGINT NOT NULL,
    attempt      BIGINT NOT NULL,
    task         TEXT NOT NULL,
    stdout       TEXT NOT NULL,
    stdout_bytes BIGINT NOT NULL,
    stdout_lines BIGINT NOT NULL,
    stderr       TEXT NOT NULL,
    stderr_bytes BIGINT NOT NULL,
    stderr_lines BIGINT NOT NULL,
    PRIMARY KEY (run_id, step, attempt)
);

INSERT INTO schema_compat (version, oldest) VALUES (6, 1);

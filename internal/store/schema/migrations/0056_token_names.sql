-- +goose Up
-- The name of a token is unique among those with a project in common: across projects, a refused name would show that another project has it.
-- Roles are JSON, so package tokens compares them. A server of an earlier version cannot create tokens from then on.
DROP INDEX tokens_name;
CREATE INDEX tokens_name ON tokens (name) WHERE revoked_at IS NULL;

INSERT INTO schema_compat (version, oldest) VALUES (56, 7);

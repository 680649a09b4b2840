-- +goose Up
-- The sizes in bytes of JSON of inputs and outputs that are stored shortened, as the interpreter recorded them; 0 for values that are stored
-- whole, and for those of older releases.
ALTER TABLE steps ADD COLUMN input_size BIGINT NOT NULL DEFAULT 0;
ALTER TABLE steps ADD COLUMN output_size BIGINT NOT NULL DEFAULT 0;

INSERT INTO schema_compat (version, oldest) VALUES (48, 7);

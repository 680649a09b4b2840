-- +goose Up
-- Runs by their end, for those that delete old ones. Rows that were taken over from elsewhere need not have its time.
CREATE INDEX runs_ended ON runs (project, COALESCE(ended_at, status_at, created_at), id)
    WHERE status IN ('completed', 'failed', 'canceled', 'terminated', 'timed_out');
-- Whether anything is still to be delivered to a run. It is as small as what is pending.
CREATE INDEX deliveries_open ON deliveries (run_id) WHERE status = 'pending';

INSERT INTO schema_compat (version, oldest) VALUES (16, 7);

-- Inserts :count runs that have ended, one each minute, the newest an hour ago: most have completed, one in fifty has failed.
INSERT INTO runs (id, project, workflow, version, document_hash, status, queued_reason, waiting_kind, status_at, cancel_requested,
  cancel_reason, request_id, trigger_kind, actor, created_at, started_at, ended_at, steps_total, steps_done, sequence, position,
  state_position, interpreter, execution_id, input, output)
SELECT substr(h, 1, 8) || '-' || substr(h, 9, 4) || '-7' || substr(md5(i::text), 1, 3) || '-8' || substr(md5(i::text), 4, 3) || '-' || substr(md5(i::text), 7, 12),
  'default', 'bench/w' || i % 20, '1.0.0', 'sha256:aa', CASE WHEN i % 50 = 11 THEN 'failed' WHEN i % 100 = 21 THEN 'canceled' ELSE 'completed' END,
  '', '', at, FALSE, '', 'order-' || i % 1000 || '-' || i, CASE WHEN i % 5 = 0 THEN 'event' WHEN i % 7 = 0 THEN 'schedule' ELSE 'api' END,
  'ada', at, at, at + 1500000, 3, 3, 4, 9, 9, 2, md5(i::text), '{"customer":"ada","items":[1,2,3]}', '{"ok":true}'
FROM (SELECT i, at, lpad(to_hex(at / 1000), 12, '0') AS h
  FROM (SELECT i, (extract(epoch FROM now())::bigint - 3600 - i * 60) * 1000000 AS at FROM generate_series(0, :count - 1) AS i) AS times) AS made;
VACUUM ANALYZE runs;

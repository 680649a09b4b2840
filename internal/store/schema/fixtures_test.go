package schema_test

// fixture is data of one schema version, and the expected data at every later one, which also has the data of earlier
// versions.
type fixture struct {
	insert []string
	want   map[string]string
}

// fixtures has one for each migration: a migration without one fails the test.
func fixtures() map[int64]fixture {
	return map[int64]fixture{
		1: {
			insert: []string{
				`INSERT INTO projects (name, description, created_at) VALUES ('shop', 'the shop''s', 1750000000000001)`,
				`INSERT INTO documents (hash, canonical) VALUES ('sha256:aa', '{"a":1}')`,
				`INSERT INTO workflows (project, name, short_name, title, summary, state, latest_version, pause_reason, created_at,
				updated_at) VALUES ('shop', 'a/order', 'order', 'Order', '', 'published', '1.0.0', '', 1, 2)`,
				`INSERT INTO drafts (project, workflow, title, summary, source, saved_at)
				VALUES ('shop', 'a/order', 'Order', '', 'do: []', 3)`,
				`INSERT INTO versions (project, workflow, version, hash, title, summary, publisher, published_at, source)
				VALUES ('shop', 'a/order', '1.0.0', 'sha256:aa', 'Order', '', 'ada', 4, 'do: [{}]')`,
			},
			want: map[string]string{
				`SELECT description FROM projects WHERE name = 'shop' AND created_at = 1750000000000001`:           "the shop's",
				`SELECT d.canonical FROM versions v JOIN documents d ON d.hash = v.hash WHERE v.version = '1.0.0'`: `{"a":1}`,
				`SELECT latest_version FROM workflows WHERE name = 'a/order'`:                                      "1.0.0",
				`SELECT source FROM drafts WHERE workflow = 'a/order'`:                                             "do: []",
			},
		},
		2: {
			insert: []string{
				`INSERT INTO runs (id, project, workflow, version, document_hash, status, queued_reason, waiting_kind, status_at,
				cancel_requested, cancel_reason, request_id, trigger_kind, actor, created_at, steps_total, steps_done, sequence,
				position, state_position, interpreter, execution_id, input) VALUES ('r1', 'shop', 'a/order', '1.0.0', 'sha256:aa',
				'running', '', '', 5, FALSE, '', 'q1', 'api', 'ada', 5, 1, 0, 2, 3, 3, 1, 'x', '{"n":1.0}')`,
				`INSERT INTO steps (run_id, number, path, pointer, task, kind, status, waiting_kind, sequence, position, output)
				VALUES ('r1', 1, '/do/0', '/do/0', 'pay', 'call', 'completed', '', 2, 3, '[1]')`,
			},
			want: map[string]string{
				`SELECT input FROM runs WHERE id = 'r1' AND status = 'running' AND NOT cancel_requested`: `{"n":1.0}`,
				`SELECT output FROM steps WHERE run_id = 'r1' AND number = 1`:                            "[1]",
			},
		},
		3: {
			insert: []string{
				`INSERT INTO audit (at, actor_kind, actor_name, action, project, subject, reason)
				VALUES (6, 'local', 'ada', 'run.start', 'shop', 'r1', 'because')`,
			},
			want: map[string]string{
				`SELECT reason FROM audit WHERE subject = 'r1'`: "because",
				// The results of later migrations for existing runs.
				`SELECT CASE WHEN status = 'running' AND sequence = 2 THEN 'as it was' END FROM runs WHERE id = 'r1'`: "as it was",
			},
		},
		4: {
			insert: []string{
				`INSERT INTO runs (id, project, workflow, version, document_hash, status, queued_reason, waiting_kind, status_at,
				cancel_requested, cancel_reason, request_id, trigger_kind, actor, created_at, steps_total, steps_done, sequence,
				position, state_position, interpreter, execution_id, input, expires_at, told) VALUES ('r2', 'shop', 'a/order', '1.0.0',
				'sha256:aa', 'queued', 'engine', '', 5, FALSE, '', 'q2', 'api', 'ada', 5, 0, 0, 1, 0, 0, 1, '', '{}', 9, FALSE)`,
				`INSERT INTO workers (server_id, contract, address, namespace, namespace_id, projects, started_at, beat_at)
				VALUES ('host-1', 'abc', '127.0.0.1:7233', 'default', 'n1', '["default"]', 5, 6)`,
			},
			want: map[string]string{
				`SELECT expires_at FROM runs WHERE id = 'r2' AND NOT told`: "9",
				`SELECT contract FROM workers WHERE server_id = 'host-1'`:  "abc",
			},
		},
		5: {
			insert: []string{`UPDATE runs SET left_executions = 'w x' WHERE id = 'r1'`},
			want: map[string]string{
				`SELECT left_executions FROM runs WHERE id = 'r1'`:                                "w x",
				`SELECT CASE WHEN left_executions = '' THEN 'none' END FROM runs WHERE id = 'r2'`: "none",
			},
		},
		6: {
			insert: []string{`INSERT INTO runs_home (one, address, namespace, namespace_id, since) VALUES (1, '127.0.0.1:7233', 'default', 'n1', 5)`},
			want:   map[string]string{`SELECT namespace_id FROM runs_home`: "n1"},
		},
		7: {
			insert: []string{
				`UPDATE versions SET trigger_spec = '{"mode":"any"}', timer = '{"cron":"* * * * *"}' WHERE version = '1.0.0'`,
				`INSERT INTO inboxes (project, head, parked, received_at) VALUES ('shop', 2, TRUE, 5)`,
				`INSERT INTO dispatchers (project, task_queue, epoch, holder, routed, pending) VALUES ('shop', 'q', 3, 'host-1', 1, 1)`,
				`INSERT INTO events (project, position, id, source, type, subject, data_content_type, data_schema, data_base64, received_at, actor, data)
				VALUES ('shop', 2, 'e', '/s', 't', '', '', '', FALSE, 5, 'ada', '{"n":1.0}')`,
				`INSERT INTO routings (project, last, first, status, reason) VALUES ('shop', 1, 1, 'unmatched', 'nobody')`,
				`INSERT INTO deliveries (project, id, position, kind, status, due_at, claimed_by, attempts, workflow, version, run_id, listener, created_at,
				updated_at, reason, positions) VALUES ('shop', 'd', 1, 'start', 'pending', 5, 3, 0, 'a/order', '1.0.0', 'r3', '', 5, 5, '', '[1]')`,
				`INSERT INTO delivery_events (project, position, delivery) VALUES ('shop', 1, 'd')`,
				`INSERT INTO listeners (project, id, run_id, since, spec) VALUES ('shop', 'l', 'r1', 1, '{}')`,
				`INSERT INTO listener_types (project, type, listener) VALUES ('shop', 't', 'l')`,
				`INSERT INTO triggers (project, workflow, version, hash, since, published_at, spec) VALUES ('shop', 'a/order', '1.0.0', 'sha256:aa', 1, 4, '{}')`,
				`INSERT INTO trigger_types (project, type, workflow) VALUES ('shop', '', 'a/order')`,
				`INSERT INTO partials (project, workflow, key_hash, key, positions) VALUES ('shop', 'a/order', 'h', 'k', '[1,0]')`,
				`INSERT INTO owner_changes (project, task_queue, epoch, execution, at, holder, how, previous_epoch, previous_holder, ended, reason)
				VALUES ('shop', 'q', 3, 'x', 5, 'host-1', 'takeover', 2, 'host-2', 'w', 'why')`,
			},
			want: map[string]string{
				`SELECT timer FROM versions WHERE version = '1.0.0'`:                                                `{"cron":"* * * * *"}`,
				`SELECT data FROM events e JOIN inboxes i ON i.project = e.project AND i.head = e.position`:         `{"n":1.0}`,
				`SELECT d.id FROM deliveries d JOIN dispatchers w ON w.project = d.project AND w.routed = position`: "d",
				`SELECT reason FROM routings WHERE project = 'shop' AND last = 1`:                                   "nobody",
				`SELECT l.run_id FROM listeners l JOIN listener_types t ON t.listener = l.id WHERE t.type = 't'`:    "r1",
				`SELECT p.key FROM partials p JOIN trigger_types t ON t.workflow = p.workflow`:                      "k",
				`SELECT how FROM owner_changes WHERE epoch = 3`:                                                     "takeover",
			},
		},
		8: {
			insert: []string{`INSERT INTO run_links (run_id, replay_of, parent, path, depth) VALUES ('r2', 'r1', '', '', 0)`},
			want:   map[string]string{`SELECT run_id FROM run_links WHERE replay_of = 'r1'`: "r2"},
		},
		9: {
			insert: []string{
				`INSERT INTO run_verdicts (run_id, project, code, created_at, sequence, since, checked_at, detail, advice)
				VALUES ('r1', 'shop', 'NO_POLLER', 5, 2, 5, 6, 'nobody', 'start one')`,
				`INSERT INTO task_failures (run_id, at, message) VALUES ('r1', 5, 'panic')`,
			},
			want: map[string]string{
				`SELECT v.code FROM run_verdicts v JOIN runs r ON r.id = v.run_id AND r.sequence = v.sequence`: "NO_POLLER",
				`SELECT message FROM task_failures WHERE run_id = 'r1'`:                                        "panic",
				`SELECT workflow FROM run_verdicts WHERE run_id = 'r1'`:                                        "a/order",
			},
		},
		16: {
			insert: []string{`UPDATE runs SET status = 'completed', ended_at = 7 WHERE id = 'r2'`},
			want:   map[string]string{`SELECT id FROM runs WHERE ended_at = 7`: "r2"},
		},
		10: {
			insert: []string{
				`INSERT INTO batches (id, project, request_id, fingerprint, action, version, reason, rate, actor_kind, actor_name, created_at, paused,
				selected, selected_run, total, succeeded, refused, failed, waiting) VALUES ('b', 'shop', 'q', 'f', 'cancel', '', 'why', 0.5, 'local', 'ada',
				5, FALSE, TRUE, '', 1, 0, 0, 0, '')`,
				`INSERT INTO batch_items (batch, number, run_id, status, begun, new_run_id, error) VALUES ('b', 1, 'r1', 'pending', FALSE, '', '')`,
			},
			want: map[string]string{`SELECT i.run_id FROM batches b JOIN batch_items i ON i.batch = b.id WHERE b.rate = 0.5`: "r1"},
		},
		11: {
			insert: []string{`INSERT INTO tokens (id, name, hash, roles, creator, created_at, expires_at) VALUES ('t1', 'ci', 'aa', '{"*":"admin"}', 'ada', 5, 9)`},
			want:   map[string]string{`SELECT name FROM tokens WHERE id = 't1' AND revoked_at IS NULL`: "ci"},
		},
		12: {
			insert: []string{
				`INSERT INTO quotas (project, concurrent_runs, steps, period_seconds, accepted) VALUES ('shop', 2, 100, 60, 7)`,
				`INSERT INTO quota_periods (project, begun_at, granted, extra) VALUES ('shop', 60000000, 9, 1)`,
				`INSERT INTO quota_grants (run_id, project, begun_at, taken, entered, total, resumed_in) VALUES ('r1', 'shop', 60000000, 9, 0, 9, NULL)`,
				`UPDATE runs SET admission = 7, metered = TRUE WHERE id = 'r2'`,
			},
			want: map[string]string{
				`SELECT accepted FROM quotas WHERE concurrent_runs = 2 AND steps = 100`:                        "7",
				`SELECT g.taken FROM quota_grants g JOIN quota_periods p ON p.project = g.project`:             "9",
				`SELECT admission FROM runs WHERE id = 'r2' AND metered`:                                       "7",
				`SELECT CASE WHEN admission IS NULL AND NOT metered THEN 'none' END FROM runs WHERE id = 'r1'`: "none",
			},
		},
		13: {
			insert: []string{`INSERT INTO run_awaited (run_id, parent, call_key) VALUES ('r2', 'r1', 'k')`},
			want:   map[string]string{`SELECT call_key FROM run_awaited WHERE parent = 'r1'`: "k"},
		},
		14: {
			insert: []string{
				`INSERT INTO originals (run_id, what, number, key_id, sealed) VALUES ('r1', 'input', 0, 'k1', 'abc')`,
				`UPDATE runs SET redacted = TRUE WHERE id = 'r1'`,
			},
			want: map[string]string{
				`SELECT key_id FROM originals WHERE run_id = 'r1' AND what = 'input'`:     "k1",
				`SELECT input FROM runs WHERE redacted AND id = 'r1'`:                     `{"n":1.0}`,
				`SELECT CASE WHEN NOT redacted THEN 'none' END FROM runs WHERE id = 'r2'`: "none",
			},
		},
		15: {
			insert: []string{`INSERT INTO run_legacy (run_id, engine, fingerprint, settled_at, original) VALUES ('r1', 'db', 'aa', 5, '{"row": {}}')`},
			want:   map[string]string{`SELECT engine FROM run_legacy WHERE run_id = 'r1' AND settled_at = 5`: "db"},
		},
		17: {
			insert: []string{
				`INSERT INTO deliveries (project, id, position, kind, status, due_at, claimed_by, attempts, workflow, version, run_id, listener, created_at,
				updated_at, reason, positions) VALUES ('shop', 'd17', 2, 'wake', 'done', NULL, 3, 1, '', '', 'r1', 'l', 5, 5, '', '[2]')`,
			},
			want: map[string]string{`SELECT id FROM deliveries WHERE run_id = 'r1' ORDER BY position, id`: "d17"},
		},
		18: {
			insert: []string{`UPDATE events SET original_key = 'k1' WHERE project = 'shop'`},
			want:   map[string]string{`SELECT DISTINCT original_key FROM events WHERE project = 'shop'`: "k1"},
		},
		19: {
			insert: []string{`UPDATE run_verdicts SET workflow = 'a/order' WHERE run_id = 'r1' AND workflow = ''`},
		},
		20: {
			insert: []string{
				`INSERT INTO legacy_sources (name, marks, later, noted_at, walked, rounds) VALUES ('db/legacy', '{}', '{}', 5, 'null', 1)`,
				`INSERT INTO legacy_removed (run_id) VALUES ('old')`,
			},
			want: map[string]string{`SELECT name FROM legacy_sources WHERE rounds = 1`: "db/legacy", `SELECT run_id FROM legacy_removed`: "old"},
		},
		21: {
			insert: []string{
				`INSERT INTO runs (id, project, workflow, version, document_hash, status, queued_reason, waiting_kind, status_at,
				cancel_requested, cancel_reason, request_id, trigger_kind, actor, created_at, steps_total, steps_done, sequence,
				position, state_position, interpreter, execution_id, input) VALUES ('r21', 'shop', 'a/order', '1.0.0', 'sha256:aa',
				'waiting', '', 'event', 5, TRUE, '', 'q21', 'api', 'ada', 5, 1, 0, 2, 3, 3, 1, 'x', '{}')`,
			},
			want: map[string]string{`SELECT id FROM runs WHERE status = 'waiting' AND cancel_requested`: "r21"},
		},
		22: {
			insert: []string{`UPDATE projects SET max_steps = 7, end_poison = TRUE WHERE name = 'shop'`},
			want:   map[string]string{`SELECT name FROM projects WHERE end_poison AND max_steps = 7`: "shop"},
		},
		23: {
			insert: []string{
				`INSERT INTO step_summaries (run_id, from_number, to_number, open_steps, position) VALUES ('r1', 3, 9, '[4]', 5)`,
				`INSERT INTO task_summaries (run_id, pointer, task, kind, count, completed, failed, skipped, canceled, shortest, longest, total, sequence)
				VALUES ('r1', '/do/0/a', 'a', 'set', 3, 3, 0, 0, 0, 1, 2, 4, 7)`,
			},
			want: map[string]string{
				`SELECT open_steps FROM step_summaries WHERE to_number = 9`: "[4]", `SELECT pointer FROM task_summaries WHERE run_id = 'r1'`: "/do/0/a",
			},
		},
		24: {
			insert: []string{
				`UPDATE task_failures SET cause = 'PANIC', build = 'b1', other_build = 'b0', since = 4 WHERE run_id = 'r1'`,
				`UPDATE run_verdicts SET cause = 'PANIC' WHERE run_id = 'r1'`,
				`INSERT INTO poison_endings (run_id, project, at) VALUES ('r1', 'shop', 5)`,
			},
			want: map[string]string{
				`SELECT message FROM task_failures WHERE cause = 'PANIC' AND build = 'b1' AND other_build = 'b0' AND since = 4`: "panic",
				`SELECT run_id FROM run_verdicts WHERE cause = 'PANIC'`:                                                         "r1",
				`SELECT run_id FROM poison_endings WHERE project = 'shop' AND at = 5`:                                           "r1",
			},
		},
		25: {
			insert: []string{`UPDATE runs SET request_digest = 'k1:abc' WHERE id = 'r21'`},
			want:   map[string]string{`SELECT id FROM runs WHERE request_digest = 'k1:abc'`: "r21"},
		},
		26: {
			insert: []string{`INSERT INTO payloads (run_id, digest, created_at, value) VALUES ('r21', 'd26', 6, 'sealed')`},
			want:   map[string]string{`SELECT digest FROM payloads WHERE run_id = 'r21'`: "d26"},
		},
		27: {
			insert: []string{
				`INSERT INTO run_repairs (run_id, requested_at, due_at, reason, behind, forced, correction, attempts, done, problem, claim, generation)
				VALUES ('r1', 5, 6, 'behind', TRUE, FALSE, '', 1, '', 'no key', 1, 1)`,
				`UPDATE runs SET written_at = 7 WHERE id = 'r1'`,
			},
			want: map[string]string{`SELECT problem FROM run_repairs WHERE run_id = 'r1'`: "no key", `SELECT written_at FROM runs WHERE id = 'r1'`: "7"},
		},
		28: {
			insert: []string{`UPDATE steps SET wait_details = '{"deadlineBy":"/timeout"}' WHERE run_id = 'r1'`},
			want:   map[string]string{`SELECT wait_details FROM steps WHERE run_id = 'r1'`: `{"deadlineBy":"/timeout"}`},
		},
		29: {
			insert: []string{`INSERT INTO sessions (id, hash, token, created_at, last_used_at, idle, expires_at, ended_at) VALUES ('s1', 'h', 't1', 1, 2, 3, 4, NULL)`},
			want:   map[string]string{`SELECT token FROM sessions WHERE id = 's1' AND ended_at IS NULL`: "t1"},
		},
		32: {
			insert: []string{
				`UPDATE runs SET failure_group = '00aa11bb22cc33dd' WHERE id = 'r1'`,
				`INSERT INTO problems (id, project, first_seen, last_seen, revision, acknowledger, snooze_count, owner, note, content)
				VALUES ('stuck.shop.NO_POLLER', 'shop', 5, 6, 0, '', 0, 'ada', '', '{}')`,
			},
			want: map[string]string{
				`SELECT failure_group FROM runs WHERE id = 'r1'`:       "00aa11bb22cc33dd",
				`SELECT owner FROM problems WHERE resolved_at IS NULL`: "ada",
			},
		},
		33: {
			insert: []string{`INSERT INTO steps (run_id, number, sequence, position, path, pointer, task, kind, status, waiting_kind)
				VALUES ('r33', 33, 1, 0, '/do/0/b', '/do/0/b', 'b', 'call', 'failed', '')`},
			want: map[string]string{
				`SELECT s.task FROM steps s WHERE s.run_id = 'r33' AND s.status = 'failed' ORDER BY s.number DESC LIMIT 1`: "b",
			},
		},
		34: {
			insert: []string{`INSERT INTO views (id, project, owner_kind, owner_name, updater_kind, updater_name, name, query, shared, revision, updated_at)
				VALUES ('v1', 'shop', 'token', 'ada', 'token', 'bob', 'Failed', '{}', TRUE, 2, 5)`},
			want: map[string]string{`SELECT updater_name FROM views WHERE project = 'shop' AND shared AND name = 'Failed'`: "bob"},
		},
		37: {
			insert: []string{`UPDATE maintenance SET active = TRUE, reason = 'upgrade', since = 5`},
			want:   map[string]string{`SELECT reason FROM maintenance WHERE active`: "upgrade"},
		},
		38: {
			insert: []string{`INSERT INTO webhook_positions (project, position) VALUES ('shop', 7)`},
			want:   map[string]string{`SELECT CAST(position AS TEXT) FROM webhook_positions`: "7"},
		},
		39: {
			insert: []string{
				`INSERT INTO event_outbox (project, occurred_at, id, type, source, subject, data) VALUES ('shop', 5, 'r1-failed', 't', '/s', 'r1', '{}')`,
				`INSERT INTO run_links (run_id, replay_of, parent, path, depth) VALUES ('r39', '', 'r1', '', 1)`,
			},
			want: map[string]string{
				`SELECT id FROM event_outbox WHERE project = 'shop'`:                     "r1-failed",
				`SELECT run_id FROM run_links WHERE parent = 'r1' AND NOT after_failure`: "r39",
			},
		},
		40: {
			insert: []string{`INSERT INTO events (project, position, id, source, type, subject, data_content_type, data_schema, data_base64, received_at, actor, data, traceparent)
				VALUES ('shop', 40, 'e40', '/s', 't', '', '', '', FALSE, 40, 'ada', '{}', '00-01-02-01')`},
			want: map[string]string{`SELECT traceparent FROM events WHERE id = 'e40'`: "00-01-02-01"},
		},
		41: {
			insert: []string{
				`INSERT INTO listener_types (project, type, listener, shape, value) VALUES ('shop', 't', 'l', 's', 'v')`,
				`INSERT INTO listener_types (project, type, listener) VALUES ('shop', 'u', 'l')`, // as an earlier release
			},
			want: map[string]string{
				`SELECT listener FROM listener_types WHERE type = 't' AND shape = 's' AND value = 'v'`: "l",
				`SELECT listener FROM listener_types WHERE type = 't' AND shape = '' AND value = ''`:   "l",
				`SELECT listener FROM listener_types WHERE type = 'u' AND shape = '' AND value = ''`:   "l",
			},
		},
		42: {
			insert: []string{
				`INSERT INTO taken_events (run_id, position) VALUES ('r1', 5)`,
				`INSERT INTO run_warnings (run_id, code, detail, at) VALUES ('r1', 'EVENTS_NOT_SEARCHED', 'd', 6)`,
			},
			want: map[string]string{
				`SELECT position FROM taken_events WHERE run_id = 'r1'`: "5",
				`SELECT detail FROM run_warnings WHERE run_id = 'r1'`:   "d",
				`SELECT COALESCE(MAX(events_after), -1) FROM runs`:      "-1", // runs of an earlier release
			},
		},
		44: {
			insert: []string{`INSERT INTO events (project, position, id, source, type, subject, data_content_type, data_schema, data_base64, received_at, actor, data,
				occurred_at, occurred_nanos) VALUES ('shop', 44, 'e44', '/s', 't', '', '', '', FALSE, 44, 'ada', '{}', 5, 789)`},
			want: map[string]string{
				`SELECT occurred_nanos FROM events WHERE id = 'e44'`: "789",
				`SELECT occurred_nanos FROM events WHERE id = 'e40'`: "0", // of an earlier release
			},
		},
		45: {
			insert: []string{`UPDATE batches SET outcomes = '{"completed":1}', runs_ended_at = 9 WHERE id = 'b'`, `UPDATE batch_items SET outcome = 'completed' WHERE batch = 'b'`},
			want: map[string]string{
				`SELECT i.outcome FROM batches b JOIN batch_items i ON i.batch = b.id WHERE b.runs_ended_at = 9`: "completed",
			},
		},
		46: {
			insert: []string{
				`INSERT INTO workers (server_id, contract, address, namespace, namespace_id, projects, started_at, beat_at, busy)
					VALUES ('host-46', 'c', 'a', 'n', 'i', '[]', 1, 1, '[{"project":"shop"}]')`,
			},
			want: map[string]string{
				`SELECT busy FROM workers WHERE server_id = 'host-46'`: `[{"project":"shop"}]`,
			},
		},
		47: {
			insert: []string{`UPDATE runs SET left_in = '{"address":"a:7233"}' WHERE id = 'r1'`},
			want: map[string]string{
				`SELECT left_in FROM runs WHERE id = 'r1'`:                                   `{"address":"a:7233"}`,
				`SELECT CASE WHEN left_in IS NULL THEN 'none' END FROM runs WHERE id = 'r2'`: "none", // of an earlier release
			},
		},
		48: {
			insert: []string{`UPDATE steps SET input_size = 573000 WHERE run_id = 'r33'`},
			want: map[string]string{
				`SELECT input_size FROM steps WHERE run_id = 'r33'`:  "573000",
				`SELECT output_size FROM steps WHERE run_id = 'r33'`: "0",
			},
		},
		49: {
			insert: []string{`UPDATE runs_home SET searched_until = 49`},
			want:   map[string]string{`SELECT searched_until FROM runs_home`: "49"},
		},
		50: {
			insert: []string{`UPDATE runs_home SET compared_at = 50, restored_at = 51, restored_to = 50`},
			want:   map[string]string{`SELECT restored_at - restored_to FROM runs_home WHERE compared_at = 50`: "1"},
		},
		52: {
			insert: []string{`INSERT INTO servers (id, instance, roles, version, started_at, beat_at) VALUES ('host-52', 'host:8080', '["api"]', '1.2.3', 1, 2)`},
			want:   map[string]string{`SELECT instance FROM servers WHERE id = 'host-52'`: "host:8080"},
		},
		53: {
			insert: []string{`UPDATE runs_home SET foreign_runs = '[]'`},
			want:   map[string]string{`SELECT foreign_runs FROM runs_home`: "[]"},
		},
		54: {
			insert: []string{`INSERT INTO sealing_keys (id, fingerprint, first_at, last_at) VALUES ('k54', 'f54', 1, 2)`},
			want:   map[string]string{`SELECT fingerprint FROM sealing_keys WHERE id = 'k54'`: "f54"},
		},
		55: {
			insert: []string{`UPDATE runs SET input_redacted = TRUE`, `UPDATE steps SET redacted = TRUE`},
			want: map[string]string{
				`SELECT COUNT(*) FROM runs WHERE NOT input_redacted OR end_redacted`: "0",
				`SELECT COUNT(*) FROM steps WHERE NOT redacted`:                      "0",
			},
		},
		56: {
			insert: []string{
				`INSERT INTO tokens (id, name, hash, roles, creator, created_at) VALUES ('t56', 'ci', 'h', '{"shop": "viewer"}', 'ada', 1), ('u56', 'ci', 'h', '{"lab": "viewer"}', 'ada', 1)`,
			},
			want: map[string]string{`SELECT COUNT(*) FROM tokens WHERE name = 'ci' AND id LIKE '%56'`: "2"},
		},
		35: {
			insert: []string{`INSERT INTO outages (server, since, kind, seen_at) VALUES ('host-1', 5, 'hung', 6)`},
			want:   map[string]string{`SELECT kind FROM outages WHERE ended_at IS NULL`: "hung"},
		},
		36: {
			insert: []string{`INSERT INTO run_labels (run_id, name, value, project, created_at) VALUES ('r36', 'order', '4711', 'default', 36)`},
			want: map[string]string{
				`SELECT run_id FROM run_labels WHERE project = 'default' AND name = 'order' AND value = '4711' ORDER BY created_at, run_id`: "r36",
			},
		},
	}
}

-- Every statement of the store, by name. The line under a name says which transition it makes, or what it is for.
-- A task is always read as (seq, event_id, joins, fixed, moving); rows.py knows that order.

-- name: insert_task
-- nothing -> queued
INSERT INTO tasks (
    id, account, "window", model_version, fingerprint, priority, created_at,
    state, version, cancel_wanted, remote_id, place_until, finished_at, fixed, moving
) VALUES (
    :id, :account, :window, :model_version, :fingerprint, :priority, :created_at,
    :state, :version, :cancel_wanted, :remote_id, :place_until, :finished_at, :fixed, :moving
);

-- name: log_event
-- any transition: its entry in the log, if the task still has the expected version
INSERT INTO events (task, version, name, at, moving)
SELECT seq, :version, :name, :at, :moving FROM tasks WHERE id = :id AND version = :expected_version;

-- name: move_task
-- any transition: the task as it is after it
UPDATE tasks SET
    state = :state, version = :version, cancel_wanted = :cancel_wanted, remote_id = :remote_id,
    place_until = :place_until, finished_at = :finished_at, moving = :moving, event_id = :event_id
WHERE id = :id
RETURNING seq, joins;

-- name: note_event
-- nothing -> queued: its first entry in the log
UPDATE tasks SET event_id = :event_id WHERE seq = :seq;

-- name: trim_log
-- forget the oldest entries of the log
DELETE FROM events WHERE id <= :last;

-- name: join_task
-- no transition: one more submit is answered by this task
UPDATE tasks SET joins = joins + 1 WHERE id = :id;

-- name: task
-- one task
SELECT seq, event_id, joins, fixed, moving FROM tasks WHERE id = :id;

-- name: client_key
-- which task a client's own name for its submit stands for
SELECT task_id, fingerprint, forced FROM client_keys WHERE kind = :kind AND name = :name;

-- name: keep_client_key
-- remember the task that answered a submit under the client's name for it; the newest answer counts
INSERT INTO client_keys (kind, name, task_id, fingerprint, forced)
VALUES (:kind, :name, :task_id, :fingerprint, :forced)
ON CONFLICT (kind, name) DO UPDATE SET
    task_id = excluded.task_id, fingerprint = excluded.fingerprint, forced = excluded.forced;

-- name: joinable
-- the task itself, if its work is at hand: unended, or done with its result still here
SELECT seq, event_id, joins, fixed, moving FROM tasks
WHERE id = :id AND cancel_wanted = 0
    AND (finished_at IS NULL OR (state = 'done' AND EXISTS (SELECT 1 FROM results WHERE task_id = tasks.id)));

-- name: cached
-- the task of the newest result of a fingerprint
SELECT seq, event_id, joins, fixed, moving FROM tasks
WHERE id = (
    SELECT task_id FROM results WHERE fingerprint = :fingerprint AND saved_at >= :since ORDER BY saved_at DESC LIMIT 1
);

-- name: use_result
-- a result has answered a submit
UPDATE results SET used_at = max(used_at, :at) WHERE task_id = :task_id;

-- name: twin
-- the newest task whose outcome can answer another submit of its fingerprint
SELECT seq, event_id, joins, fixed, moving FROM tasks
WHERE fingerprint = :fingerprint AND cancel_wanted = 0
    AND (
        (finished_at IS NULL AND (:join_live OR created_at >= :since))
        OR (
            state = 'done' AND created_at >= :since
            AND EXISTS (SELECT 1 FROM results WHERE task_id = tasks.id)
        )
    )
ORDER BY seq DESC LIMIT 1;

-- name: head
-- the task that is next in its window's line (queued -> submitting follows)
SELECT seq, event_id, joins, fixed, moving FROM tasks
WHERE finished_at IS NULL AND account = :account AND "window" = :window AND state = 'queued'
ORDER BY priority, seq LIMIT 1;

-- name: places_by_state
-- places taken by tasks that are being made or run
SELECT count(*) FROM tasks
WHERE finished_at IS NULL AND account = :account AND "window" = :window AND state IN ('submitting', 'running');

-- name: places_by_time
-- places held for remote jobs that may still run, and when the first is given back
SELECT count(*), min(place_until) FROM tasks
WHERE place_until > :now AND account = :account AND "window" = :window AND state NOT IN ('submitting', 'running');

-- name: live
-- every unended task
SELECT seq, event_id, joins, fixed, moving FROM tasks WHERE finished_at IS NULL;

-- name: outlived
-- ended tasks whose remote jobs may still run in their places; whether by now they do not, the clock may tell wrongly
SELECT seq, event_id, joins, fixed, moving FROM tasks WHERE place_until IS NOT NULL AND finished_at IS NOT NULL;

-- name: move_place
-- no transition: the wall clock was set, or what held the place is over
UPDATE tasks SET place_until = :place_until, moving = :moving WHERE id = :id AND place_until IS NOT NULL;

-- name: page
-- tasks, newest first
SELECT seq, event_id, joins, fixed, moving FROM tasks WHERE seq < :before ORDER BY seq DESC LIMIT :limit;

-- name: page_of_account
-- one account's tasks, newest first
SELECT seq, event_id, joins, fixed, moving FROM tasks
WHERE account = :account AND seq < :before ORDER BY seq DESC LIMIT :limit;

-- name: page_of_state
-- tasks in one state, newest first; an account of NULL stands for all
SELECT seq, event_id, joins, fixed, moving FROM tasks
WHERE state = :state AND (:account IS NULL OR account = :account) AND seq < :before ORDER BY seq DESC LIMIT :limit;

-- name: remote_ids
-- the remote jobs that belong to tasks made since then
SELECT remote_id FROM tasks WHERE account = :account AND created_at >= :since AND remote_id IS NOT NULL;

-- name: history
-- the newest done tasks of a model
SELECT seq, event_id, joins, fixed, moving FROM tasks
WHERE state = 'done' AND account = :account AND model_version IS :model
ORDER BY seq DESC LIMIT :limit;

-- name: log_bounds
-- the oldest and the newest entry of the log
SELECT (SELECT min(id) FROM events), (SELECT max(id) FROM events);

-- name: log
-- tasks as they stood at each entry, oldest first
SELECT tasks.seq, events.id, tasks.joins, tasks.fixed, events.moving
FROM events JOIN tasks ON tasks.seq = events.task
WHERE events.id > :after ORDER BY events.id LIMIT :limit;

-- name: log_of_task
-- one task as it stood at each of its entries, oldest first
SELECT tasks.seq, events.id, tasks.joins, tasks.fixed, events.moving
FROM events JOIN tasks ON tasks.seq = events.task
WHERE events.task = (SELECT seq FROM tasks WHERE id = :id) AND events.id > :after ORDER BY events.id LIMIT :limit;

-- name: counters
-- the lifetime counters
SELECT name, value FROM counters;

-- name: add_to_counter
-- count
INSERT INTO counters (name, value) VALUES (:name, :value)
ON CONFLICT (name) DO UPDATE SET value = value + excluded.value;

-- name: set_pause
-- an account rests
INSERT INTO pauses (account, scope, reason, detail, began_at, until)
VALUES (:account, :scope, :reason, :detail, :began_at, :until)
ON CONFLICT (account, scope) DO UPDATE SET
    reason = excluded.reason, detail = excluded.detail, began_at = excluded.began_at, until = excluded.until;

-- name: lift_pause
-- an account goes on
DELETE FROM pauses WHERE account = :account AND scope = :scope;

-- name: pauses
-- every account that rests
SELECT account, scope, reason, detail, began_at, until FROM pauses ORDER BY account, scope;

-- name: keep_copy
-- keep what stands for a picture at a provider
INSERT INTO remote_copies (account, asset, reference, made_at) VALUES (:account, :asset, :reference, :made_at)
ON CONFLICT (account, asset) DO UPDATE SET reference = excluded.reference, made_at = excluded.made_at;

-- name: drop_old_copies
-- a provider keeps nothing so long
DELETE FROM remote_copies WHERE account = :account AND made_at < :oldest;

-- name: drop_copy
-- a provider does not know that reference any more
DELETE FROM remote_copies WHERE account = :account AND asset = :asset AND reference = :reference;

-- name: copy
-- what stands for a picture at a provider
SELECT account, asset, reference, made_at FROM remote_copies WHERE account = :account AND asset = :asset;

-- name: keep_limits
-- keep what a provider tells of an account's limits
INSERT INTO told_limits (account, limits, told_at) VALUES (:account, :limits, :told_at)
ON CONFLICT (account) DO UPDATE SET limits = excluded.limits, told_at = excluded.told_at;

-- name: limits
-- what every provider told last
SELECT account, limits, told_at FROM told_limits ORDER BY account;

-- name: keep_quota
-- keep what a provider tells of what an account may still spend
INSERT INTO told_quotas (account, left, unit, resets_at, told_at)
VALUES (:account, :left, :unit, :resets_at, :told_at)
ON CONFLICT (account) DO UPDATE SET
    left = excluded.left, unit = excluded.unit, resets_at = excluded.resets_at, told_at = excluded.told_at;

-- name: quotas
-- what every provider told last of what is left to spend
SELECT account, left, unit, resets_at, told_at FROM told_quotas ORDER BY account;

-- name: add_asset
-- keep what is known of a picture
INSERT INTO assets (id, pixels, width, height, size_bytes, media_type)
VALUES (:id, :pixels, :width, :height, :size_bytes, :media_type)
ON CONFLICT (id) DO NOTHING;

-- name: asset
-- one picture
SELECT id, pixels, width, height, size_bytes, media_type FROM assets WHERE id = :id;

-- name: add_result
-- downloading -> done: its files enter the cache's index
INSERT INTO results (task_id, fingerprint, size_bytes, saved_at, used_at, files)
VALUES (:task_id, :fingerprint, :size_bytes, :at, :at, :files);

-- name: forget_result
-- a result leaves the cache; its task stays done
DELETE FROM results WHERE task_id = :task_id;

-- name: coldest_results
-- the results used longest ago
SELECT task_id, fingerprint, size_bytes, saved_at, used_at, files FROM results ORDER BY used_at LIMIT :limit;

-- name: result_bytes
-- the bytes of all results together
SELECT coalesce(sum(size_bytes), 0) FROM results;

-- name: old_results
-- results saved before an instant
SELECT task_id, fingerprint, size_bytes, saved_at, used_at, files FROM results
WHERE saved_at < :instant ORDER BY saved_at LIMIT :limit;

-- name: result_paths
-- the path of every file of every result
SELECT json_extract(file.value, '$.path') FROM results, json_each(results.files) AS file;

-- name: doubt_queued
-- queued -> uncertain, in a backup only: it may have been made since
UPDATE tasks SET
    state = 'uncertain', version = version + 1, event_id = -1,
    moving = json_set(
        moving, '$.state', 'uncertain', '$.version', version + 1, '$.updated_at', :at, '$.error', json(:problem)
    )
WHERE state = 'queued';

-- name: log_doubted
-- queued -> uncertain, in a backup only: the entries in its log
INSERT INTO events (task, version, name, at, moving)
SELECT seq, version, 'Lost', :at, moving FROM tasks WHERE event_id = -1;

-- name: note_doubted
-- queued -> uncertain, in a backup only: the tasks' newest entries
UPDATE tasks SET event_id = (SELECT max(id) FROM events WHERE task = tasks.seq) WHERE event_id = -1;

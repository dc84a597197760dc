-- The first schema. Instants are whole microseconds since 1970 UTC; sizes are bytes; see docs/reference/database.md.

-- One wanted clip each. `fixed` and `moving` hold the record; the other columns repeat what is searched for.
CREATE TABLE tasks (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    account TEXT NOT NULL,
    "window" TEXT NOT NULL,
    model_version TEXT,
    fingerprint TEXT NOT NULL,
    priority INTEGER NOT NULL CHECK (priority IN (0, 1)),
    created_at INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN (
        'queued', 'submitting', 'uncertain', 'running', 'downloading', 'done', 'failed', 'cancelled', 'expired'
    )),
    version INTEGER NOT NULL CHECK (version >= 0),
    cancel_wanted INTEGER NOT NULL CHECK (cancel_wanted IN (0, 1)),
    remote_id TEXT,
    place_until INTEGER,
    finished_at INTEGER,
    event_id INTEGER NOT NULL DEFAULT 0,
    joins INTEGER NOT NULL DEFAULT 0 CHECK (joins >= 0),
    fixed TEXT NOT NULL,
    moving TEXT NOT NULL,
    CHECK ((finished_at IS NOT NULL) = (state IN ('done', 'failed', 'cancelled', 'expired'))),
    CHECK (state NOT IN ('running', 'downloading') OR remote_id IS NOT NULL)
) STRICT;

-- The line of each window, and every live task; ended ones are not in it, so its size is that of the work at hand.
CREATE INDEX tasks_live ON tasks (account, "window", state, priority, seq) WHERE finished_at IS NULL;
-- Places that are held by time alone.
CREATE INDEX tasks_held ON tasks (account, "window", place_until) WHERE place_until IS NOT NULL;
CREATE INDEX tasks_twins ON tasks (fingerprint, seq);
CREATE INDEX tasks_pages ON tasks (account, seq);
CREATE INDEX tasks_states ON tasks (state, seq);
CREATE INDEX tasks_history ON tasks (account, model_version, seq) WHERE state = 'done';
-- A remote job belongs to one task; one that ended without its result may be taken over by another.
CREATE UNIQUE INDEX tasks_remote ON tasks (account, remote_id)
    WHERE remote_id IS NOT NULL AND state NOT IN ('failed', 'cancelled', 'expired');
CREATE INDEX tasks_remote_age ON tasks (account, created_at, remote_id) WHERE remote_id IS NOT NULL;

-- Every transition, with the task's moving part as it stood then. Only the newest are kept.
CREATE TABLE events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task INTEGER NOT NULL REFERENCES tasks (seq) ON DELETE CASCADE,
    version INTEGER NOT NULL,
    name TEXT NOT NULL,
    at INTEGER NOT NULL,
    moving TEXT NOT NULL
) STRICT;
CREATE INDEX events_task ON events (task, id);

-- What clients call their submits: Idempotency-Key ('client_key') and X-Client-Request-Id ('request_id').
CREATE TABLE client_keys (
    kind TEXT NOT NULL CHECK (kind IN ('client_key', 'request_id')),
    name TEXT NOT NULL,
    task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    fingerprint TEXT NOT NULL,
    forced INTEGER NOT NULL CHECK (forced IN (0, 1)),
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX client_keys_task ON client_keys (task_id);

-- What the result cache holds.
CREATE TABLE results (
    task_id TEXT PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
    fingerprint TEXT NOT NULL,
    size_bytes INTEGER NOT NULL CHECK (size_bytes >= 0),
    saved_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    files TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX results_newest ON results (fingerprint, saved_at);
CREATE INDEX results_coldest ON results (used_at, size_bytes);
CREATE INDEX results_oldest ON results (saved_at);

CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE pauses (
    account TEXT NOT NULL,
    scope TEXT NOT NULL CHECK (scope IN ('creates', 'calls')),
    reason TEXT NOT NULL,
    detail TEXT NOT NULL,
    until INTEGER,
    PRIMARY KEY (account, scope)
) STRICT, WITHOUT ROWID;

CREATE TABLE assets (
    id TEXT PRIMARY KEY,
    pixels TEXT NOT NULL,
    width INTEGER NOT NULL CHECK (width > 0),
    height INTEGER NOT NULL CHECK (height > 0),
    size_bytes INTEGER NOT NULL CHECK (size_bytes >= 0),
    media_type TEXT NOT NULL
) STRICT, WITHOUT ROWID;

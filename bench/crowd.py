"""
A database as it is after years: many ended tasks, many that wait. Made from one real task of each kind, row by row.

    python -m bench.crowd DATABASE LIVE ENDED

takes the newest queued and the newest done task that a stopped relay left in `DATABASE`, and multiplies them with their
log entries. The copies of the done one are as after their eviction: no file, nothing in the cache's index.
"""

import json
import sqlite3
import sys
from contextlib import closing

COPIES = """
INSERT INTO tasks ({columns})
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :copies)
SELECT {values} FROM numbers, (SELECT * FROM tasks WHERE state = :state ORDER BY seq DESC LIMIT 1) AS model
"""
ENTRIES = """
INSERT INTO events (task, version, name, at, moving)
SELECT tasks.seq, model.version, model.name, model.at, model.moving
FROM tasks, (SELECT * FROM events WHERE task = :model ORDER BY id DESC LIMIT 1) AS model
WHERE tasks.seq > :last AND tasks.state = :state
"""
OWN = {
    "id": "model.id || '-' || n",
    "fingerprint": "substr(model.fingerprint, 1, 56) || printf('%08x', n)",
    "remote_id": "model.remote_id || '-' || n",
    "fixed": "replace(model.fixed, model.id, model.id || '-' || n)",
    "moving": "replace(model.moving, model.id, model.id || '-' || n)",
}
"""What a copy has for itself; every other column is its model's."""


def multiply(connection: sqlite3.Connection, state: str, copies: int) -> None:
    """
    Add so many copies of the newest task in that state.
    """
    model, last = connection.execute(
        "SELECT max(seq), (SELECT max(seq) FROM tasks) FROM tasks WHERE state = ?", (state,)
    ).fetchone()
    if model is None:
        raise RuntimeError(f"there is no {state} task to copy")
    columns = [row[1] for row in connection.execute("PRAGMA table_info(tasks)") if row[1] != "seq"]
    statement = COPIES.format(
        columns=", ".join(f'"{column}"' for column in columns),
        values=", ".join(OWN.get(column, f'model."{column}"') for column in columns),
    )
    connection.execute(statement, {"copies": copies, "state": state})
    connection.execute(ENTRIES, {"model": model, "last": last, "state": state})


def run(database: str, live: int, ended: int) -> dict[str, int]:
    """
    Multiply; how many tasks there are now, by state.
    """
    with closing(sqlite3.connect(database)) as connection, connection:
        multiply(connection, "done", ended)
        multiply(connection, "queued", live)
        return dict(connection.execute("SELECT state, count(*) FROM tasks GROUP BY state"))


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))

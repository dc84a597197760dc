"""
The price of one durable commit on this disk: a 2 KB row into SQLite, write-ahead log, synchronous=FULL, one caller.

    python -m bench.commits DIRECTORY SECONDS

prints the percentiles in milliseconds as JSON.
"""

import json
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path


def run(directory: Path, seconds: float) -> dict[str, float]:
    """
    Commit one row after the other for so long.
    """
    latencies = []
    with closing(sqlite3.connect(directory / "commits.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE row (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT")
        until = time.perf_counter() + seconds
        while (start := time.perf_counter()) < until:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO row (body) VALUES (?)", ("x" * 2048,))
            connection.execute("COMMIT")
            latencies.append(time.perf_counter() - start)
    latencies.sort()
    return {"p50": 1000 * latencies[len(latencies) // 2], "p99": 1000 * latencies[int(len(latencies) * 0.99)]}


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]), float(sys.argv[2]))))

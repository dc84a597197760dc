"""
Power cuts: what a disk may hold when it went dark, opened again by the store, and held against what had been answered.

`cut_log` cuts the write-ahead log anywhere, as it is, or with rubbish behind the cut. `replay` knows every write of the
store and plays it to a disk that keeps what was synced and, of the rest, whatever chance keeps.
"""

import random
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from vidrelay.core.task import State
from vidrelay.store import migrate, reads
from vidrelay.store.sqlite import SqliteStore
from vidrelay.store.statements import Session
from vidrelay.testing.records import events_to, make_task, moved
from vidrelay.testing.stored import rule

from .faulty_sqlite import Op, disk

SECTOR = 512
HEADER, FRAME = 32, 24 + 4096

Promise = tuple[int, str, int]
"""Up to where the disk must have come, and the task's id and version that were answered then."""


class Lost(AssertionError):
    """
    Something that was answered is not there.
    """


async def live(store: SqliteStore, tasks: int, mark: "Mark") -> None:
    """
    Let tasks live their lives in the store, and mark each answer.
    """
    for number in range(tasks):
        task = (await store.add(make_task(), rule())).task
        mark(task.id, task.version)
        for event in events_to(list(State)[number % len(State)], task):
            task = await store.save(moved(task, event), event, expected_version=task.version)
            mark(task.id, task.version)


class Mark:
    """
    Notes what was answered, and how far the disk had come.
    """

    def __init__(self) -> None:
        self.promises: list[Promise] = []

    def __call__(self, task_id: str, version: int) -> None:
        """
        The task was answered at this version.
        """
        self.promises.append((self.reached(), task_id, version))

    def reached(self) -> int:
        """
        How far the disk has come.
        """
        raise NotImplementedError


def check(path: Path, promises: list[Promise], reached: int) -> None:
    """
    Open the database as a relay does, and look for everything that was answered by then.

    Raises:
        Lost: It is not whole, or something is missing.
    """
    with closing(migrate.open_for_writing(path, migrate.migrations())) as connection:
        (sound,) = connection.execute("PRAGMA quick_check").fetchone()
        if sound != "ok":
            raise Lost(sound)
        versions = dict(connection.execute("SELECT id, version FROM tasks"))
        entries = dict(
            connection.execute("SELECT tasks.id, max(events.id) FROM events, tasks WHERE seq = task GROUP BY 1")
        )
        own = dict(connection.execute("SELECT id, event_id FROM tasks"))
        reads.live(Session(connection))
    if entries != own:
        raise Lost("a task and its log differ")
    for at, task_id, version in promises:
        if at <= reached and versions.get(task_id, -1) < version:
            raise Lost(f"{task_id} was answered at version {version} and is at {versions.get(task_id)}")


# The log, cut ---------------------------------------------------------------------------------------------------------


class LogMark(Mark):
    """
    Counts the bytes of the write-ahead log.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._log = path.with_name(f"{path.name}-wal")

    def reached(self) -> int:
        """
        Its length.
        """
        return self._log.stat().st_size


async def cut_log(folder: Path, *, cuts: int, tails: int, seed: int = 0) -> dict[str, int]:
    """
    Cut a killed relay's log at so many places, then at as many more with rubbish behind; every cut must hold.

    Raises:
        Lost: One did not.
    """
    path = folder / "killed" / "relay.db"
    path.parent.mkdir()
    store = await SqliteStore.open(path)
    mark = LogMark(path)
    await live(store, 24, mark)
    base, log = path.read_bytes(), path.with_name("relay.db-wal").read_bytes()
    await store.aclose()
    chance = random.Random(seed)
    edges = [HEADER + FRAME * n + d for n in range(len(log) // FRAME + 1) for d in (-1, 0, 1, 24)]
    places = [chance.choice(edges) if n % 2 else chance.randrange(len(log) + 1) for n in range(cuts + tails)]
    for number, place in enumerate(places):
        tail = b"" if number < cuts else _rubbish(log, place, chance)
        torn = folder / "torn"
        torn.mkdir()
        (torn / "relay.db").write_bytes(base)
        (torn / "relay.db-wal").write_bytes(log[:place] + tail)
        check(torn / "relay.db", mark.promises, min(place, len(log)))
        shutil.rmtree(torn)
    return {"cuts": cuts, "tails": tails, "answers": len(mark.promises), "logBytes": len(log)}


def _rubbish(log: bytes, place: int, chance: random.Random) -> bytes:
    """
    What may lie behind the end of a file that was being written.
    """
    length = chance.choice((1, 23, 24, 512, FRAME, 3 * FRAME + 7))
    match chance.randrange(4):
        case 0:
            return chance.randbytes(length)
        case 1:
            return bytes(length)
        case 2:
            # Frames of the same log that were valid elsewhere.
            start = HEADER + FRAME * chance.randrange(max(1, len(log) // FRAME))
            return log[start : start + length]
        case _:
            rest = bytearray(log[place:])
            if rest:
                rest[chance.randrange(min(len(rest), FRAME))] ^= 1 << chance.randrange(8)
            return bytes(rest)


# Unsynced writes, dropped ---------------------------------------------------------------------------------------------


class Recorder(Mark):
    """
    Keeps everything that SQLite did to its files.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ops: list[Op] = []

    def judge(self, op: Op) -> None:
        """
        Note it, and let it pass.
        """
        self.ops.append(op)

    def reached(self) -> int:
        """
        How many things were done.
        """
        return len(self.ops)


@dataclass
class _Disk:
    """
    What is durable of one file, and what was done to it since.
    """

    durable: bytearray
    since: list[Op] = field(default_factory=list)

    def take(self, op: Op) -> None:
        if op.kind == "sync":
            for done in self.since:
                _apply(self.durable, done)
            self.since.clear()
        else:
            self.since.append(op)

    def after(self, chance: random.Random) -> bytes:
        content = bytearray(self.durable)
        keep = chance.choice((0.0, 0.5, 0.9, 1.0))
        for op in self.since:
            if chance.random() < keep:
                _apply(content, op if chance.random() < 0.8 else _torn(op, content, chance))
            elif op.kind == "write" and chance.random() < 0.3 and len(content) < op.offset + len(op.data):
                # Its length reached the disk, its bytes did not.
                content.extend(bytes(op.offset + len(op.data) - len(content)))
        return bytes(content)


def _apply(content: bytearray, op: Op) -> None:
    if op.kind == "truncate":
        del content[op.offset :]
        return
    if len(content) < op.offset:
        content.extend(bytes(op.offset - len(content)))
    content[op.offset : op.offset + len(op.data)] = op.data


def _torn(op: Op, content: bytearray, chance: random.Random) -> Op:
    """
    The write with some of its sectors as they were before.
    """
    data = bytearray(op.data)
    for start in range(0, len(data), SECTOR):
        if chance.random() < 0.5:
            old = content[op.offset + start : op.offset + start + SECTOR]
            data[start : start + SECTOR] = bytes(old).ljust(len(data[start : start + SECTOR]), b"\0")[:SECTOR]
    return Op(op.kind, op.path, op.offset, bytes(data))


async def replay(
    folder: Path, *, crashes: int, tasks: int = 120, seed: int = 0, recorder: Recorder | None = None
) -> dict[str, int]:
    """
    Cut the power so many times while tasks live their lives, checkpoints included; every answer must outlast it.

    Raises:
        Lost: One did not.
    """
    path = folder / "recorded" / "relay.db"
    path.parent.mkdir()
    await (await SqliteStore.open(path)).aclose()
    base = path.read_bytes()
    recorder = recorder or Recorder()
    with disk(recorder.judge):
        store = await SqliteStore.open(path)
        await live(store, tasks, recorder)
        await store.aclose()
    chance = random.Random(seed)
    moments = sorted(chance.randrange(len(recorder.ops) + 1) for _ in range(crashes))
    for files, moment in _moments(recorder.ops, path, base, moments):
        dark = folder / "dark"
        dark.mkdir()
        for name, file in files.items():
            content = file.after(chance)
            if content or name == path.name:
                (dark / name).write_bytes(content)
        check(dark / path.name, recorder.promises, moment)
        shutil.rmtree(dark)
    checkpoints = sum(op.kind == "sync" and op.path == str(path) for op in recorder.ops)
    return {"crashes": crashes, "writes": len(recorder.ops), "checkpoints": checkpoints}


def _moments(ops: list[Op], path: Path, base: bytes, moments: list[int]) -> Iterator[tuple[dict[str, _Disk], int]]:
    files = {path.name: _Disk(bytearray(base))}
    done = 0
    for moment in moments:
        for op in ops[done:moment]:
            name = Path(op.path).name
            if op.kind == "delete":
                files.pop(name, None)
            else:
                files.setdefault(name, _Disk(bytearray())).take(op)
        done = moment
        yield files, moment

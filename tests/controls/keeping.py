"""
Bugs in what is on the disk, and in what is said of it.
"""

import os
import re
import sqlite3
from typing import Any

import vidrelay.transport.download as downloads
from controls.planting import around, bug
from vidrelay.core import lifecycle
from vidrelay.core.lifecycle import (
    CancelRequested,
)
from vidrelay.core.task import State, Task
from vidrelay.daemon.state import StateLock
from vidrelay.files import local
from vidrelay.files.local import LocalFiles
from vidrelay.store import migrate
from vidrelay.store.writer import Transaction, Writer


@bug("tests/store/test_writer.py")
def event_told_before_commit() -> None:
    """Whoever listens is told of a change while it is being written."""
    writers: dict[int, Writer] = {}

    @around(Writer, "__init__")
    def _(original: Any, self: Writer, connection: sqlite3.Connection, *args: Any, **kwargs: Any) -> None:
        original(self, connection, *args, **kwargs)
        writers[id(connection)] = self

    @around(Transaction, "tell")
    def _(original: Any, self: Transaction, task: Task) -> None:
        writer = writers[id(self._connection)]
        writer._loop.call_soon_threadsafe(writer._tell, task)


@bug("tests/store/test_database_file.py::test_both_connections_are_set_up_for_durability")
def synchronous_normal() -> None:
    """A commit does not wait for the disk."""

    @around(migrate, "open_for_writing")
    def _(original: Any, *args: Any) -> Any:
        connection = original(*args)
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection


@bug("tests/files/test_durability.py")
def missing_fsync() -> None:
    """A file gets its name before its bytes are on the disk."""

    class NoSync:
        """The system's functions, but one."""

        def __getattr__(self, name: str) -> Any:
            return getattr(os, name)

        def fsync(self, descriptor: int) -> None:
            """Do nothing, quickly."""

    local.os = NoSync()  # type: ignore[attr-defined]


@bug("tests/transport/test_download.py::test_what_is_no_media_file_is_never_kept")
def published_before_it_is_checked() -> None:
    """A file gets its name, and then it is looked at."""

    @around(downloads.HttpDownloader, "_take")
    async def _(original: Any, self: Any, reply: Any, *rest: Any) -> Any:
        name, attempt, watch = rest
        self._check_status(reply)
        expected = await self._agree(reply, attempt)
        part = attempt.part = attempt.part or await self._files.part(name)
        await self._receive(reply, part, expected, watch)
        return await part.commit(extension="mp4", media_type="video/mp4")


@bug("tests/files/test_local.py::test_the_sweep_of_a_later_life_keeps_what_the_index_knows")
def sweep_deletes_what_is_known() -> None:
    """The sweep at the start does not ask the index."""

    @around(LocalFiles, "sweep")
    async def _(original: Any, self: LocalFiles, known: frozenset[str]) -> int:
        swept: int = await original(self, frozenset())
        return swept


@bug("tests/transport/test_download.py::test_without_a_strong_etag_it_begins_anew")
def resumes_on_a_weak_etag() -> None:
    """A broken fetch is gone on with where the server only says that the file means the same."""
    downloads._STRONG_ETAG = re.compile(r'(?:W/)?"[^"]*"')


@bug("tests/core/test_lifecycle.py")
def an_ended_task_changes() -> None:
    """A done task can still be cancelled."""
    lifecycle.TRANSITIONS[State.DONE][CancelRequested] = State.CANCELLED


@bug("tests/test_daemon.py::test_the_lock_is_one_relays")
def lock_not_held() -> None:
    """A lock that somebody holds is taken all the same."""

    @around(StateLock, "take")
    def _(original: Any, self: StateLock) -> bool:
        original(self)
        return True

"""
The deliberate bugs. Each is what a careful person might write on a bad day, planted by replacing parts of the imported
package, with the tests that must notice it.
"""

import os
import re
import secrets
import socket
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

import vidrelay.client.dial as dialling
import vidrelay.core.fingerprint as fingerprints
import vidrelay.transport.download as downloads
import vidrelay.transport.gate as gates
from vidrelay.core import lifecycle
from vidrelay.core.lifecycle import (
    Cancelled,
    CancelRequested,
    Deferred,
    Failed,
    Found,
    Lost,
    Started,
    advance,
)
from vidrelay.core.ports import Admission, How, Refused, Trouble, TwinRule
from vidrelay.core.task import Problem, State, Task
from vidrelay.daemon import ports
from vidrelay.daemon.state import StateLock
from vidrelay.files import local
from vidrelay.files.local import LocalFiles
from vidrelay.providers.openai.adapter import OpenAiAdapter
from vidrelay.scheduler.account import Account
from vidrelay.scheduler.cache import Cache
from vidrelay.scheduler.relay import Relay
from vidrelay.scheduler.roster import Roster
from vidrelay.scheduler.saving import Saver
from vidrelay.scheduler.submitting import Submitter
from vidrelay.scheduler.watching import Watcher
from vidrelay.server.gate import Gate as ServerGate
from vidrelay.store import changes, migrate, reads, rows
from vidrelay.store.sqlite import SqliteStore
from vidrelay.store.writer import Transaction, Writer
from vidrelay.transport import http
from vidrelay.transport.dial import CountedDialer, VettedDialer
from vidrelay.transport.gate import Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """
    One bug: what it is, what plants it, and the tests of which at least one must fail.
    """

    means: str
    plant: Callable[[], None]
    caught_by: tuple[str, ...]


BUGS: dict[str, Bug] = {}


def bug(*caught_by: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Enter the function into the table under its own name; its docstring says what the bug is."""

    def enter(function: Callable[[], None]) -> Callable[[], None]:
        BUGS[function.__name__] = Bug(means=(function.__doc__ or "").strip(), plant=function, caught_by=caught_by)
        return function

    return enter


def plant(name: str) -> None:
    """Plant the bug of that name in this process."""
    BUGS[name].plant()


def around(owner: Any, name: str) -> Callable[[Callable[..., Any]], None]:
    """Replace a function by one that is given the original first; a coroutine stays one."""
    original = getattr(owner, name)

    def put(function: Callable[..., Any]) -> None:
        @wraps(original)
        def replaced(*args: Any, **kwargs: Any) -> Any:
            return function(original, *args, **kwargs)

        @wraps(original)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            return await function(original, *args, **kwargs)

        setattr(owner, name, awaited if iscoroutinefunction(original) else replaced)

    return put


# Paying twice ---------------------------------------------------------------------------------------------------------


@bug("tests/kill/test_kill_points.py::test_killed_there[k14-0]")
def commit_after_send() -> None:
    """The intent to create is committed together with the answer, after the create was sent."""
    started: dict[str, tuple[Task, Started, int]] = {}

    @around(SqliteStore, "take_place")
    async def _(original: Any, self: SqliteStore, **wanted: Any) -> Task | None:
        head = await self._reader.run(
            lambda session: session.row("head", account=wanted["account"], window=wanted["window"])
        )
        if head is None:
            return None
        task = rows.task_of(head)
        event = Started(submission_key=wanted["submission_key"])
        moved = advance(task, event, wanted["now"])
        started[task.id] = moved, event, task.version
        self.on_commit(moved)
        return moved

    @around(SqliteStore, "save")
    async def _(original: Any, self: SqliteStore, task: Task, event: Any, *, expected_version: int) -> Task:
        if task.id in started:
            intent, begun, version = started.pop(task.id)
            await original(self, intent, begun, expected_version=version)
        saved: Task = await original(self, task, event, expected_version=expected_version)
        return saved


@bug("tests/scheduler/test_faults.py::test_a_lost_answer_is_never_followed_by_a_second_create")
def blind_retry() -> None:
    """A create whose answer was lost is sent again."""

    @around(Submitter, "_lose")
    async def _(original: Any, self: Submitter, task: Task, account: Account, detail: str) -> None:
        await self._tools.saver.try_save(task, Deferred(detail=detail))


@bug("tests/scheduler/test_restart.py::test_a_create_that_an_earlier_life_was_at_is_not_sent_by_this_one")
def resend_after_a_crash() -> None:
    """A create that was under way when the relay died is sent again at the next start."""

    @around(Submitter, "settle")
    async def _(original: Any, self: Submitter, task: Task, account: Account) -> None:
        await self._tools.saver.try_save(task, Deferred(detail="the relay was restarted"))


@bug("tests/transport/test_http.py")
def nothing_was_sent() -> None:
    """A create that broke after its first byte is taken for one that never left."""

    @around(http, "_as_ours")
    def _(original: Any, exc: Exception, target: Any, *, maybe_sent: bool) -> Any:
        return original(exc, target, maybe_sent=False)


@bug("tests/transport/test_http.py::test_a_create_never_goes_over_http2")
def http2_for_creates() -> None:
    """Creates share HTTP/2 connections, whose orderly end loses answers to calls that were carried out."""

    @around(http, "_kind")
    def _(original: Any, request: Any, target: Any) -> Any:
        return http._Kind.POLL


@bug("tests/transport/test_http.py::test_a_redirect_is_given_back_and_not_followed")
def followed_redirects() -> None:
    """A redirect that answers a call is followed, creates and all, wherever it leads."""

    @around(http.HttpTransport, "_answer")
    async def _(original: Any, self: Any, request: Any, target: Any, *rest: Any) -> Any:
        response = await original(self, request, target, *rest)
        location = dict(response.headers).get(b"Location") or dict(response.headers).get(b"location")
        if response.status // 100 == 3 and location:
            following = location.decode()
            if following.startswith("/"):
                following = f"{target.scheme}://{target.authority}{following}"
            return await original(self, request, http_target(following), *rest)
        return response

    def http_target(url: str) -> Any:
        return gates._read(url)


@bug("tests/providers/test_openai.py::test_two_alike_are_left_to_a_person")
def adopts_the_first_that_fits() -> None:
    """Of several jobs that look like a lost create, the first is adopted."""

    @around(OpenAiAdapter, "_settled")
    def _(original: Any, self: OpenAiAdapter, *args: Any, **kwargs: Any) -> Any:
        outcome = original(self, *args, **kwargs)
        candidates = getattr(outcome, "candidates", ())
        return Found(remote_id=candidates[0]) if candidates else outcome


@bug("tests/scheduler/test_faults.py::test_two_equal_lost_creates_are_left_to_a_person")
def adopts_for_either_of_two_tasks() -> None:
    """One job is adopted by whichever of two equal lost tasks looks first."""

    @around(Submitter, "_has_rival")
    def _(original: Any, self: Submitter, task: Task) -> bool:
        return False


# The same request -----------------------------------------------------------------------------------------------------


@bug("tests/scheduler/test_twins.py::test_a_triple_click_makes_one_remote_task")
def twin_lookup_outside_the_transaction() -> None:
    """A twin is looked for first, and the task inserted afterwards."""

    @around(SqliteStore, "add")
    async def _(original: Any, self: SqliteStore, task: Task, rule: TwinRule) -> Admission:
        known = await self._reader.run(
            lambda session: session.row(
                "twin", fingerprint=task.fingerprint, since=rows.to_number(rule.twins_since), join_live=rule.join_live
            )
        )
        if known is not None and not task.request.force_refresh:
            admission: Admission = await original(self, task, rule)
            return admission
        return Admission(task=await self._change(lambda change: changes._insert(change, task)), how=How.CREATED)


@bug("tests/store/test_contract.py", "tests/scheduler/test_twins.py")
def idempotency_key_ignored() -> None:
    """The Idempotency-Key is stored and never looked at."""

    @around(changes, "_repeated")
    def _(original: Any, transaction: Transaction, task: Task, client_key: str | None) -> None:
        return None


@bug("tests/core/test_fingerprint.py::test_an_unknown_parameter_counts")
def unknown_parameter_does_not_count() -> None:
    """The fingerprint covers the parameters that somebody has thought of."""
    known = {"prompt", "model", "seconds", "size", "seed", "duration", "negative_prompt", "input_reference"}

    @around(fingerprints, "canonical")
    def _(original: Any, *, parameters: Any, **rest: Any) -> str:
        kept = {name: value for name, value in parameters.items() if name in known}
        text: str = original(parameters=kept, **rest)
        return text


@bug("tests/scheduler/test_twins.py::test_a_result_whose_file_is_gone_is_made_anew")
def cache_hit_without_a_look() -> None:
    """A cached result is answered without looking whether its file is there."""

    @around(Cache, "whole")
    async def _(original: Any, self: Cache, task: Task) -> bool:
        return True


# Places and pace ------------------------------------------------------------------------------------------------------


@bug("tests/scheduler/test_windows.py", "tests/scheduler/test_restart.py")
def places_in_memory() -> None:
    """The places taken are counted in memory, from nought at each start."""

    @around(reads, "places")
    def _(original: Any, session: Any, **wanted: Any) -> Any:
        return 0, None

    @around(Roster, "holding")
    def _(original: Any, self: Roster, key: Any) -> frozenset[str]:
        seen: set[str] = self.__dict__.setdefault("seen_here", set())
        return frozenset(original(self, key) & seen)

    @around(Roster, "note")
    def _(original: Any, self: Roster, task: Task) -> None:
        self.__dict__.setdefault("seen_here", set()).add(task.id)
        original(self, task)


@bug("tests/scheduler/test_windows.py::test_a_job_that_cannot_be_stopped_keeps_its_place")
def unstoppable_job_frees_its_place() -> None:
    """A cancelled task gives its place back, though its job runs on."""

    @around(Saver, "try_save")
    async def _(original: Any, self: Saver, task: Task, event: Any) -> Any:
        if isinstance(event, Cancelled):
            event = replace(event, place_until=None)
        return await original(self, task, event)


@bug("tests/scheduler/test_windows.py::test_uncertain_tasks_keep_their_place_for_a_bounded_time")
def uncertain_task_frees_its_place() -> None:
    """A lost create holds no place, though its job may run."""

    @around(Saver, "try_save")
    async def _(original: Any, self: Saver, task: Task, event: Any) -> Any:
        if isinstance(event, Lost):
            event = replace(event, place_until=task.updated_at)
        return await original(self, task, event)


@bug("tests/scheduler/test_time.py")
def wall_clock_timers() -> None:
    """Rests and pauses are measured on the wall clock."""

    class WallClock:
        """A clock whose monotonic side is the wall's."""

        def __init__(self, clock: Any) -> None:
            self._clock = clock

        def __getattr__(self, name: str) -> Any:
            return getattr(self._clock, name)

        def monotonic(self) -> float:
            """Not monotonic at all."""
            moment: float = self._clock.now().timestamp()
            return moment

    @around(Relay, "__init__")
    def _(original: Any, self: Relay, *, clock: Any, **rest: Any) -> None:
        original(self, clock=WallClock(clock), **rest)


@bug("tests/scheduler/test_faults.py")
def retry_after_ignored() -> None:
    """However long the provider asks to wait, our own back-off is what counts."""

    @around(Account, "refused")
    def _(original: Any, self: Account, refusal: Refused, **rest: Any) -> Any:
        return original(self, replace(refusal, retry_after=None), **rest)


@bug("tests/scheduler/test_faults.py::test_a_polls_trouble_never_fails_a_paid_task")
def poll_trouble_fails_the_task() -> None:
    """A poll that goes wrong ends the task."""

    @around(Watcher, "_polled")
    async def _(original: Any, self: Watcher, *subject: Any) -> Any:
        *whose, outcome = subject
        if isinstance(outcome, Trouble):
            outcome = Failed(problem=Problem(code="poll_failed", title="A poll failed", detail=outcome.detail))
        return await original(self, *whose, outcome)


# What is on disk ------------------------------------------------------------------------------------------------------


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


# Who may come in, and where calls may go ------------------------------------------------------------------------------


@bug("tests/transport/test_gate.py")
def prefix_match_on_hosts() -> None:
    """A host is allowed if it begins like one on the list."""

    @around(Gate, "_listed")
    def _(original: Any, self: Gate, host: str) -> bool:
        return any(host.startswith(allowed) for allowed in self._exact) or original(self, host)


@bug("tests/transport/test_gate.py")
def suffix_match_without_its_dot() -> None:
    """A host is allowed if it ends like one on the list, whatever stands before."""

    @around(Gate, "_listed")
    def _(original: Any, self: Gate, host: str) -> bool:
        return any(host.endswith(suffix.lstrip(".")) for suffix in self._suffixes) or original(self, host)


@bug("tests/transport/test_http.py::test_the_checked_address_is_dialled_and_the_name_is_what_tls_and_host_say")
def address_checked_and_another_dialled() -> None:
    """The name is looked up to be checked, and looked up again to be dialled."""

    @around(VettedDialer, "connect_tcp")
    async def _(original: Any, self: VettedDialer, host: str, port: int, *rest: Any, **more: Any) -> Any:
        await self._gate.addresses(host, port)
        return await CountedDialer.connect_tcp(self, host, port, *rest, **more)


@bug("tests/server/test_gate.py")
def one_route_without_credential() -> None:
    """One harmless call is answered without a token."""

    @around(ServerGate, "_admits")
    def _(original: Any, self: ServerGate, scope: Any) -> bool:
        return (scope["method"] == "GET" and scope["raw_path"] == b"/stats") or original(self, scope)


@bug("tests/server/test_gate.py")
def host_is_not_looked_at() -> None:
    """The token is enough, whatever Host a page has been rebound to."""

    @around(ServerGate, "_admits")
    def _(original: Any, self: ServerGate, scope: Any) -> bool:
        own = next(iter(sorted(self._hosts)))
        headers = [(name, own if name == b"host" else value) for name, value in scope["headers"]]
        return bool(original(self, {**scope, "headers": headers}))


@bug("tests/server/test_gate.py")
def str_compare_of_tokens() -> None:
    """Tokens are compared as text, which an odd byte makes impossible."""

    @around(ServerGate, "_knows_token")
    def _(original: Any, self: ServerGate, credentials: dict[bytes, bytes]) -> bool:
        for value in credentials.values():
            given = value.decode().split(" ")[-1]
            if not secrets.compare_digest(given, self._token()):
                return False
        return bool(credentials)


@bug("tests/test_client.py::test_a_stranger_on_the_port_gets_neither_token_nor_prompt")
def probe_carries_the_token() -> None:
    """The listener is asked to prove itself by a call that has the token on it."""

    @around(dialling, "_prove")
    async def _(original: Any, stream: Any, beacon: Any) -> None:
        class Telling:
            """The stream, with one more header on the first call."""

            def __getattr__(self, name: str) -> Any:
                return getattr(stream, name)

            async def write(self, data: bytes, timeout: float | None = None) -> None:
                told = f"\r\nX-Local-Token: {beacon.token}\r\n\r\n".encode()
                await stream.write(data.replace(b"\r\n\r\n", told, 1), timeout=timeout)

        await original(Telling(), beacon)


@bug("tests/test_daemon.py")
def listens_everywhere() -> None:
    """The relay listens on every address of the machine."""

    class Everywhere(ports.socket.socket):
        """A socket that is not particular."""

        def bind(self, address: Any) -> None:
            super().bind(("", address[1]))

    class Sockets:
        """The system's sockets, but for that."""

        socket = Everywhere

        def __getattr__(self, name: str) -> Any:
            return getattr(socket, name)

    ports.socket = Sockets()  # type: ignore[attr-defined]

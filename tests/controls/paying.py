"""
Bugs that pay for a clip twice, or adopt the wrong one.
"""

from typing import Any

import vidrelay.core.fingerprint as fingerprints
import vidrelay.transport.gate as gates
from controls.planting import around, bug
from vidrelay.core.lifecycle import (
    Deferred,
    Found,
    Started,
    advance,
)
from vidrelay.core.ports import Admission, How, TwinRule
from vidrelay.core.task import Task
from vidrelay.providers.openai.adapter import OpenAiAdapter
from vidrelay.scheduler.cache import Cache
from vidrelay.scheduler.submitting import Submitter
from vidrelay.store import changes, rows
from vidrelay.store.sqlite import SqliteStore
from vidrelay.store.writer import Transaction
from vidrelay.transport import http


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
    async def _(original: Any, self: Submitter, task: Task, *rest: Any) -> None:
        await self._tools.saver.try_save(task, Deferred(detail=rest[-1]))


@bug("tests/scheduler/test_restart.py::test_a_create_that_an_earlier_life_was_at_is_not_sent_by_this_one")
def resend_after_a_crash() -> None:
    """A create that was under way when the relay died is sent again at the next start."""

    @around(Submitter, "settle")
    async def _(original: Any, self: Submitter, task: Task, *rest: Any) -> None:
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

    @around(OpenAiAdapter, "find")
    def _(original: Any, self: OpenAiAdapter, task: Task, search: Any) -> Any:
        outcome = yield from original(self, task, search)
        candidates = getattr(outcome, "candidates", ())
        return Found(remote_id=candidates[0]) if candidates else outcome


@bug("tests/scheduler/test_faults.py::test_two_equal_lost_creates_are_left_to_a_person")
def adopts_for_either_of_two_tasks() -> None:
    """One job is adopted by whichever of two equal lost tasks looks first."""

    @around(Submitter, "_has_rival")
    def _(original: Any, self: Submitter, task: Task) -> bool:
        return False


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

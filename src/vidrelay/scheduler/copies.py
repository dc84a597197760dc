"""
Pictures that are uploaded to a provider before a create call names them: once for each picture and account.

They are uploaded while their task is still in line and soon to have a place (`supply`), so that a relay that is killed
over it leaves nothing uncertain; the create names what is there by then (`ready`).

How old a copy is, both clocks tell: the monotonic one what has passed since this life of the relay knew of it, the wall
clock what it slept through, and what passed before. The older age counts; an age below zero, before this life, is not
known at all. So a clock that was set costs an upload at the most, or a create that is refused, which costs nothing.
"""

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from vidrelay.core.adapter import Copied, Refused, Scope, Trouble, UploadOutcome
from vidrelay.core.clock import Clock
from vidrelay.core.errors import DiskFull, StoreError, TransportError
from vidrelay.core.lifecycle import Failed
from vidrelay.core.ports import AccountBook, RemoteCopy
from vidrelay.core.task import BlockReason, JsonObject, Task
from vidrelay.scheduler.account import Account
from vidrelay.scheduler.converse import Caller

logger = logging.getLogger(__name__)

MARGIN = 0.1
"""The last share of a copy's life in which it is not used: the provider may fetch it later than the create comes."""

CLEARED_SECONDS = 600.0
"""So long no refused create is put down to a copy that was new when another was refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """
    A copy as this life knows it: it was `age` old, in seconds, at the monotonic second `seen_at`, and no refused create
    is put down to it until `cleared_until`.
    """

    copy: RemoteCopy
    age: float
    seen_at: float
    cleared_until: float = float("-inf")


@dataclass(slots=True, kw_only=True)
class _Upload:
    """
    An upload under way; `outcome` None when it is over: it was broken off.
    """

    over: asyncio.Event = field(default_factory=asyncio.Event)
    outcome: RemoteCopy | Failed | Refused | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """
    The task as the adapter is to send it, with `copies`; `reused` are those of them that may be what a provider refuses
    the create for.
    """

    task: Task
    copies: tuple[RemoteCopy, ...] = ()
    reused: tuple[RemoteCopy, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Supplied:
    """
    Every picture of a task is at its provider. `new` are the references of those that were uploaded for it just now;
    `uploaded`: one of them by this very call, and not by another task's.
    """

    new: frozenset[str]
    uploaded: bool


class Copies:
    """
    What stands for pictures at providers.
    """

    def __init__(self, book: AccountBook, clock: Clock, caller: Caller) -> None:
        self._book = book
        self._clock = clock
        self._caller = caller
        self._known: dict[tuple[str, str], _Known] = {}
        self._uploads: dict[tuple[str, str], _Upload] = {}
        self._dropped: set[tuple[str, str]] = set()

    async def supply(self, task: Task, account: Account) -> Supplied | Failed | Refused:
        """
        Upload what of the task's pictures is not at the provider yet; or say why that cannot be had now. Nothing that
        costs is sent.
        """
        new, uploaded = set(), False
        for asset_id, picture in _to_upload(task, account).items():
            if await self._kept(account, asset_id) is not None:
                continue
            joins = (account.name, asset_id) in self._uploads
            outcome = await self._uploaded(account, asset_id, picture)
            if not isinstance(outcome, RemoteCopy):
                return outcome
            new.add(outcome.reference)
            uploaded = uploaded or not joins
        return Supplied(new=frozenset(new), uploaded=uploaded)

    async def at_hand(self, task: Task, account: Account) -> bool:
        """
        Whether every picture of the task is at the provider, and may be named.
        """
        for asset_id in _to_upload(task, account):
            if await self._kept(account, asset_id) is None:
                return False
        return True

    async def ready(self, task: Task, account: Account, *, new: frozenset[str]) -> Ready | None:
        """
        The task with what stands for each of its pictures at the provider; None where one is not there, or not any
        more. `new` are the references that were uploaded for this task: no refused create is put down to them. The task
        itself stays as it is.
        """
        copies, reused = {}, []
        for asset_id in _to_upload(task, account):
            known = await self._kept(account, asset_id)
            if known is None:
                return None
            copies[asset_id] = known.copy
            if known.copy.reference not in new and known.cleared_until <= self._clock.monotonic():
                reused.append(known.copy)
        return Ready(task=_with(task, copies), copies=tuple(copies.values()), reused=tuple(reused))

    async def recalled(self, task: Task, account: Account) -> Task:
        """
        The task with what is known to stand for its pictures, which is what its create call named; nothing is uploaded.
        """
        known = {asset_id: await self._kept(account, asset_id) for asset_id in _to_upload(task, account)}
        return _with(task, {asset_id: one.copy for asset_id, one in known.items() if one is not None})

    def clear(self, copies: tuple[RemoteCopy, ...]) -> None:
        """
        A create was refused that named new copies, so it was not their fault; for a while no other refusal is put down
        to them. Many requests that are wrong in the same way would be as many uploads.
        """
        for copy in copies:
            known = self._known.get((copy.account, copy.asset))
            if known is not None and known.copy.reference == copy.reference:
                until = self._clock.monotonic() + CLEARED_SECONDS
                self._known[copy.account, copy.asset] = replace(known, cleared_until=until)

    async def drop(self, copies: tuple[RemoteCopy, ...]) -> None:
        """
        Use these no more.
        """
        for copy in copies:
            known = self._known.get((copy.account, copy.asset))
            if known is not None and known.copy.reference == copy.reference:
                del self._known[copy.account, copy.asset]
            # Also where the database cannot forget it now, or has just told another task of it.
            self._dropped.add((copy.account, copy.reference))
            try:
                await self._book.drop_copy(copy)
            except (DiskFull, StoreError) as problem:
                if not problem.retryable:
                    raise
                logger.warning("copy.not_dropped account=%s why=%s", copy.account, problem.code)

    async def _kept(self, account: Account, asset_id: str) -> _Known | None:
        """
        The copy that can be used.
        """
        key = account.name, asset_id
        known = self._known.get(key)
        if known is None:
            stored = await self._stored(key)
            age = -1.0 if stored is None else (self._clock.now() - stored.made_at).total_seconds()
            if stored is None or age < 0 or (account.name, stored.reference) in self._dropped:
                return None
            # Another task may have uploaded it anew while the database was read.
            known = self._known.setdefault(key, _Known(copy=stored, age=age, seen_at=self._clock.monotonic()))
        return known if self._age(known) < _usable_seconds(account) else None

    async def _stored(self, key: tuple[str, str]) -> RemoteCopy | None:
        try:
            return await self._book.copy(*key)
        except (DiskFull, StoreError) as problem:
            if not problem.retryable:
                raise
            logger.warning("copy.not_read account=%s why=%s", key[0], problem.code)
            return None

    def _age(self, known: _Known) -> float:
        passed = known.age + self._clock.monotonic() - known.seen_at
        return max(passed, (self._clock.now() - known.copy.made_at).total_seconds())

    async def _uploaded(
        self, account: Account, asset_id: str, picture: Mapping[str, str]
    ) -> RemoteCopy | Failed | Refused:
        """
        Upload the picture, or wait for who does.
        """
        key = account.name, asset_id
        while (running := self._uploads.get(key)) is not None:
            await running.over.wait()
            if running.outcome is not None:
                return running.outcome
        upload = self._uploads[key] = _Upload()
        try:
            upload.outcome = await self._upload(account, asset_id, picture)
            return upload.outcome
        finally:
            del self._uploads[key]
            upload.over.set()

    async def _upload(
        self, account: Account, asset_id: str, picture: Mapping[str, str]
    ) -> RemoteCopy | Failed | Refused:
        outcome: UploadOutcome
        made_at, seen_at = self._clock.now(), self._clock.monotonic()
        try:
            outcome = await self._caller.converse(account, account.plan.adapter.upload(picture), creates=True)
        except TransportError as trouble:
            outcome = Trouble(detail=trouble.message, retry_after=trouble.retry_after)
        except Exception:
            # A bug in an adapter, or an answer that breaks it: nothing was sent that costs.
            logger.exception("upload.failed account=%s asset=%s", account.name, asset_id)
            outcome = Trouble(detail="the relay could not make out the provider's answer")
        match outcome:
            case Copied():
                copy = RemoteCopy(account=account.name, asset=asset_id, reference=outcome.reference, made_at=made_at)
                # Its life may have begun when the call did.
                self._known[account.name, asset_id] = _Known(copy=copy, age=0.0, seen_at=seen_at)
                await self._keep(copy, account)
                return copy
            case Trouble():
                detail = f"a picture could not be uploaded: {outcome.detail}"
                return Refused(
                    scope=Scope.CREATES,
                    reason=BlockReason.NETWORK,
                    detail=detail,
                    retry_after=outcome.retry_after,
                )
            case _:
                return outcome

    async def _keep(self, copy: RemoteCopy, account: Account) -> None:
        try:
            await self._book.keep_copy(copy, life=account.plan.adapter.traits.copies or timedelta(0))
        except (DiskFull, StoreError) as problem:
            # It is known in memory, and a later life uploads it again.
            if not problem.retryable:
                raise
            logger.warning("copy.not_kept account=%s why=%s", copy.account, problem.code)


def _usable_seconds(account: Account) -> float:
    life = account.plan.adapter.traits.copies or timedelta(0)
    return life.total_seconds() * (1 - MARGIN)


def _to_upload(task: Task, account: Account) -> dict[str, Mapping[str, str]]:
    """
    The pictures of the task that its provider wants uploaded before a create names them.
    """
    return {} if account.plan.adapter.traits.copies is None else _pictures(task.parameters)


def _pictures(parameters: Any) -> dict[str, Mapping[str, str]]:
    """
    Every picture in a task's parameters, by its name.
    """
    if isinstance(parameters, Mapping):
        name = _name(parameters)
        if name is not None:
            return {name: parameters}
        parameters = list(parameters.values())
    if not isinstance(parameters, list | tuple):
        return {}
    return {asset_id: picture for value in parameters for asset_id, picture in _pictures(value).items()}


def _name(value: Mapping[str, Any]) -> str | None:
    """
    What a copy of that picture is kept under: its asset, and what else an adapter says of it, since some providers keep
    a copy for one model alone. None for what is no picture.
    """
    asset_id = value.get("$asset")
    if not isinstance(asset_id, str):
        return None
    rest = {name: told for name, told in value.items() if name not in ("$asset", "$copy", "mediaType")}
    return f"{asset_id} {json.dumps(rest, sort_keys=True)}" if rest else asset_id


def _with(task: Task, copies: Mapping[str, RemoteCopy]) -> Task:
    """
    The task with `$copy` beside each of these pictures.
    """
    if not copies:
        return task
    parameters: JsonObject = _walked(task.parameters, {name: copy.reference for name, copy in copies.items()})
    return replace(task, parameters=parameters)


def _walked(value: Any, references: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        reference = references.get(_name(value) or "")
        if reference is not None:
            return {**value, "$copy": reference}
        return {name: _walked(inner, references) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_walked(inner, references) for inner in value]
    return value

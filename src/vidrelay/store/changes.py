"""
What each change does to the database, inside the writer's transaction.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from vidrelay.core.adapter import Scope
from vidrelay.core.errors import IdempotencyConflict, StaleTask
from vidrelay.core.lifecycle import Accepted, Answered, Event, Failed, Found, Lost, Saved, Started, advance
from vidrelay.core.ports import Admission, How, Pause, RemoteCopy, ToldLimits, ToldQuota, TwinRule
from vidrelay.core.task import Asset, Task
from vidrelay.store import reads, rows
from vidrelay.store.writer import Transaction


def add(transaction: Transaction, task: Task, rule: TwinRule) -> Admission:
    """
    Answer a submit: client key, then cache, then twin, else this task as queued (port Store).
    """
    admission = _answer(transaction, task, rule)
    for kind, name in (("client_key", rule.client_key), ("request_id", rule.request_id)):
        if name is not None:
            transaction.change(
                "keep_client_key",
                kind=kind,
                name=name,
                task_id=admission.task.id,
                fingerprint=task.fingerprint,
                forced=task.request.force_refresh,
            )
    deduped = admission.how in (How.JOINED, How.REPEATED)
    transaction.count(submits=1, deduped=int(deduped), cacheHits=int(admission.how is How.CACHED))
    return admission


def _answer(transaction: Transaction, task: Task, rule: TwinRule) -> Admission:
    repeated = _repeated(transaction, task, rule.client_key)
    if repeated is not None:
        return Admission(task=repeated, how=How.REPEATED)
    first = _first_try(transaction, task, rule.request_id)
    if first is not None:
        return _join(transaction, first)
    if not task.request.force_refresh:
        cached = _cached(transaction, task, rule)
        if cached is not None:
            return Admission(task=cached, how=How.CACHED)
    if rule.resend or not task.request.force_refresh:
        twin = transaction.row(
            "twin",
            fingerprint=task.fingerprint,
            since=rows.to_number(rule.twins_since),
            join_live=rule.join_live or rule.resend,
        )
        if twin is not None:
            return _join(transaction, rows.task_of(twin))
    if task.request.force_refresh and rule.cut_off is not None:
        unheard = _unheard_of(transaction, task, rule.cut_off, rule.twins_since)
        if unheard is not None:
            return _join(transaction, unheard)
    return Admission(task=_insert(transaction, task), how=How.CREATED)


def _repeated(transaction: Transaction, task: Task, client_key: str | None) -> Task | None:
    """
    The task that the client's key stands for, however it ended.
    """
    if client_key is None:
        return None
    known = transaction.row("client_key", kind="client_key", name=client_key)
    if known is None:
        return None
    task_id, fingerprint, forced = known
    if fingerprint != task.fingerprint or bool(forced) is not task.request.force_refresh:
        raise IdempotencyConflict
    return reads.get(transaction, task_id)


def _first_try(transaction: Transaction, task: Task, request_id: str | None) -> Task | None:
    """
    The task that a submit of the same request id has made, if its outcome is still to be had.
    """
    if request_id is None:
        return None
    known = transaction.row("client_key", kind="request_id", name=request_id)
    if known is None or known[1] != task.fingerprint:
        return None
    found = transaction.row("joinable", id=known[0])
    return None if found is None else rows.task_of(found)


def _unheard_of(
    transaction: Transaction, task: Task, cut_off: tuple[datetime, datetime], since: datetime
) -> Task | None:
    """
    The forced task of the same app that was made as the relay's earlier life ended, if nobody has joined it since.
    """
    begin, end = cut_off
    found = transaction.row(
        "twin", fingerprint=task.fingerprint, since=rows.to_number(max(begin, since)), join_live=False
    )
    first = None if found is None else rows.task_of(found)
    if first is None or first.created_at >= end or first.joins or first.app != task.app:
        return None
    return first if first.request.force_refresh else None


def _cached(transaction: Transaction, task: Task, rule: TwinRule) -> Task | None:
    """
    The task of the newest result that is young enough; the result is marked as used now.
    """
    found = transaction.row("cached", fingerprint=task.fingerprint, since=rows.to_number(rule.cached_since))
    if found is None:
        return None
    cached = rows.task_of(found)
    transaction.change("use_result", task_id=cached.id, at=rows.to_number(task.created_at))
    return cached


def _join(transaction: Transaction, task: Task) -> Admission:
    transaction.change("join_task", id=task.id)
    joined = replace(task, joins=task.joins + 1)
    transaction.tell(joined)
    return Admission(task=joined, how=How.JOINED)


def _insert(transaction: Transaction, task: Task) -> Task:
    moving = rows.moving_values(task)
    seq = transaction.insert("insert_task", **(rows.fixed_values(task) | moving)) or 0
    event_id = _log(transaction, task, moving, "Created", task.version)
    transaction.change("note_event", seq=seq, event_id=event_id)
    added = replace(task, seq=seq, event_id=event_id)
    transaction.tell(added)
    return added


def take_place(
    transaction: Transaction, *, account: str, window: str, limit: int, submission_key: str, now: datetime
) -> Task | None:
    """
    Make the next queued task of the window submitting, if there is room (port Store).
    """
    head = transaction.row("head", account=account, window=window)
    if head is None:
        return None
    taken, _ = reads.places(transaction, account=account, window=window, now=now)
    if taken >= limit:
        return None
    task = rows.task_of(head)
    # A task that is sent again keeps its first key: by it a provider knows the second try for what it is.
    event = Started(submission_key=task.submission_key or submission_key)
    transaction.count(createAttempts=1, retries=int(task.attempts > 0))
    return save(transaction, advance(task, event, now), event, expected_version=task.version)


def save(transaction: Transaction, task: Task, event: Event, *, expected_version: int) -> Task:
    """
    Save a task that `advance` has moved (port Store).
    """
    moving = rows.moving_values(task)
    event_id = _log(transaction, task, moving, type(event).__name__, expected_version)
    ((seq, joins),) = transaction.rows("move_task", event_id=event_id, **moving)
    saved = replace(task, seq=seq, event_id=event_id, joins=joins)
    transaction.tell(saved)
    if isinstance(event, Saved):
        transaction.change("add_result", **rows.result_values(task))
        transaction.count(bytesDownloaded=sum(file.size_bytes for file in task.files))
    elif isinstance(event, Accepted | Answered | Found) or (isinstance(event, Failed) and event.remote_id is not None):
        transaction.count(remoteCreates=1)
    elif isinstance(event, Lost):
        transaction.count(uncertain=1)
    if task.ended:
        transaction.count(**{str(task.state): 1})
    return saved


def _log(transaction: Transaction, task: Task, moving: dict[str, Any], name: str, expected_version: int) -> int:
    """
    Write the entry of the log, if the stored task is at the expected version; returns its number.
    """
    event_id = transaction.insert(
        "log_event",
        id=task.id,
        version=task.version,
        name=name,
        at=rows.to_number(task.updated_at),
        moving=moving["moving"],
        expected_version=expected_version,
    )
    if event_id is None:
        current = reads.get(transaction, task.id)
        raise StaleTask(f"task {task.id} is at version {current.version}, not {expected_version}")
    return event_id


def hold(transaction: Transaction, task_id: str, until: datetime | None) -> None:
    """
    Hold the place that time alone holds for a task until then, or give it back (port Store).
    """
    task = reads.get(transaction, task_id)
    if task.place_until is not None:
        moved = replace(task, place_until=until)
        values = rows.moving_values(moved)
        transaction.change("move_place", id=task_id, place_until=values["place_until"], moving=values["moving"])
        transaction.tell(moved)


def set_pause(transaction: Transaction, account: str, scope: Scope, pause: Pause | None) -> None:
    """
    Keep, or lift, an account's pause of that scope.
    """
    if pause is None:
        transaction.change("lift_pause", account=account, scope=str(scope))
        return
    transaction.change(
        "set_pause",
        account=account,
        scope=str(scope),
        reason=pause.reason,
        detail=pause.detail,
        began_at=rows.optional_number(pause.began_at),
        until=rows.optional_number(pause.until),
    )


def keep_copy(transaction: Transaction, copy: RemoteCopy, life: timedelta) -> None:
    """
    Keep what stands for a picture at an account's provider, and forget what that keeps no more.
    """
    transaction.change("drop_old_copies", account=copy.account, oldest=rows.to_number(copy.made_at - life))
    transaction.change(
        "keep_copy",
        account=copy.account,
        asset=copy.asset,
        reference=copy.reference,
        made_at=rows.to_number(copy.made_at),
    )


def drop_copy(transaction: Transaction, copy: RemoteCopy) -> None:
    """
    Forget that reference to a picture.
    """
    transaction.change("drop_copy", account=copy.account, asset=copy.asset, reference=copy.reference)


def keep_limits(transaction: Transaction, told: ToldLimits) -> None:
    """
    Keep what an account's provider tells of its limits.
    """
    limits = rows.dumps(dict(told.limits))
    transaction.change("keep_limits", account=told.account, limits=limits, told_at=rows.to_number(told.told_at))


def keep_quota(transaction: Transaction, told: ToldQuota) -> None:
    """
    Keep what an account's provider tells of what is left to spend.
    """
    quota = told.quota
    transaction.change(
        "keep_quota",
        account=told.account,
        left=quota.left,
        unit=quota.unit,
        resets_at=None if quota.resets_at is None else rows.to_number(quota.resets_at),
        told_at=rows.to_number(told.told_at),
    )


def add_asset(transaction: Transaction, asset: Asset) -> None:
    """
    Keep what is known of a reference image.
    """
    transaction.change(
        "add_asset",
        id=asset.id,
        pixels=asset.pixels,
        width=asset.width,
        height=asset.height,
        size_bytes=asset.size_bytes,
        media_type=asset.media_type,
    )


def trim_log(transaction: Transaction, *, keep: int) -> None:
    """
    Forget the oldest entries of the log where this change has written one, now and then, so that `keep` stay.
    """
    every = max(1, keep // 50)
    for task in transaction.told:
        if task.event_id % every == 0 and task.event_id > keep:
            transaction.change("trim_log", last=task.event_id - keep)


def forget(transaction: Transaction, task_id: str) -> None:
    """
    Take a task's result out of the cache's index.
    """
    transaction.change("forget_result", task_id=task_id)

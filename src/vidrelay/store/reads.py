"""
What is read from the database; every function also works inside a change.
"""

import json
from datetime import datetime

from vidrelay.core.adapter import Quota, Scope
from vidrelay.core.errors import UnknownAsset, UnknownTask
from vidrelay.core.ports import CachedResult, Pause, RemoteCopy, ToldLimits, ToldQuota
from vidrelay.core.task import Asset, BlockReason, State, Task
from vidrelay.store import rows
from vidrelay.store.statements import Session

_BEYOND = 2**63 - 1


def get(session: Session, task_id: str) -> Task:
    """
    The task as it is stored.

    Raises:
        UnknownTask: There is none.
    """
    found = session.row("task", id=task_id)
    if found is None:
        raise UnknownTask(f"no task has the id {task_id}")
    return rows.task_of(found)


def page(
    session: Session, *, states: frozenset[State] | None, account: str | None, before: int | None, limit: int
) -> list[Task]:
    """
    Tasks, newest first, with a `seq` under `before`.
    """
    values = {"account": account, "before": _BEYOND if before is None else before, "limit": limit}
    if states is None:
        found = session.rows("page" if account is None else "page_of_account", **values)
    else:
        # By state, each from the end of its index: a rare state is found without walking past all the others.
        found = [row for state in states for row in session.rows("page_of_state", state=str(state), **values)]
    return [rows.task_of(row) for row in sorted(found, reverse=True)[:limit]]


def live(session: Session) -> list[Task]:
    """
    Every unended task, oldest first.
    """
    # Sorted by seq, the first column: here, so that SQLite need not carry whole tasks through its sorter.
    return [rows.task_of(row) for row in sorted(session.rows("live"))]


def outlived(session: Session) -> list[Task]:
    """
    The ended tasks that hold a place, or did when they were last looked at.
    """
    return [rows.task_of(row) for row in session.rows("outlived")]


def places(session: Session, *, account: str, window: str, now: datetime) -> tuple[int, datetime | None]:
    """
    How many places are taken, and when the first of those held by time alone is given back.
    """
    ((by_state,),) = session.rows("places_by_state", account=account, window=window)
    ((by_time, first),) = session.rows("places_by_time", account=account, window=window, now=rows.to_number(now))
    return by_state + by_time, None if first is None else rows.to_instant(first)


def remote_ids(session: Session, *, account: str, since: datetime) -> frozenset[str]:
    """
    The remote ids of this account's tasks that were made at or after that instant.
    """
    found = session.rows("remote_ids", account=account, since=rows.to_number(since))
    return frozenset(remote_id for (remote_id,) in found)


def durations(session: Session, *, account: str, model: str | None, limit: int) -> list[float]:
    """
    Seconds from acceptance to remote completion of the newest done tasks of that model, newest first.
    """
    found = session.rows("history", account=account, model=model, limit=limit)
    took = (rows.task_of(row).remote_seconds() for row in found)
    return [seconds for seconds in took if seconds is not None]


def log(session: Session, *, after: int, limit: int, task_id: str | None) -> list[Task] | None:
    """
    The tasks as they stood at each entry of the log above `after`; None where entries after it may be missing.

    `joins` is not in the log: it is the task's count of today.
    """
    ((oldest, newest),) = session.rows("log_bounds")
    if after < (oldest or 1) - 1 or after > (newest or 0):
        return None
    if task_id is None:
        found = session.rows("log", after=after, limit=limit)
    else:
        found = session.rows("log_of_task", id=task_id, after=after, limit=limit)
    return [rows.task_of(row) for row in found]


def counters(session: Session) -> dict[str, int]:
    """
    The lifetime counters as stored.
    """
    return dict(session.rows("counters"))


def pauses(session: Session) -> list[tuple[str, Pause]]:
    """
    Every pause that is kept, each with its account.
    """
    return [
        (
            account,
            Pause(
                scope=Scope(scope),
                reason=BlockReason(reason),
                detail=detail,
                began_at=None if began_at is None else rows.to_instant(began_at),
                until=None if until is None else rows.to_instant(until),
            ),
        )
        for account, scope, reason, detail, began_at, until in session.rows("pauses")
    ]


def copy(session: Session, account: str, asset_id: str) -> RemoteCopy | None:
    """
    What stands for a picture at an account's provider.
    """
    found = session.row("copy", account=account, asset=asset_id)
    if found is None:
        return None
    name, asset_, reference, made_at = found
    return RemoteCopy(account=name, asset=asset_, reference=reference, made_at=rows.to_instant(made_at))


def limits(session: Session) -> list[ToldLimits]:
    """
    The last limits that each account's provider told.
    """
    return [
        ToldLimits(account=account, limits=json.loads(told), told_at=rows.to_instant(told_at))
        for account, told, told_at in session.rows("limits")
    ]


def quotas(session: Session) -> list[ToldQuota]:
    """
    What each account's provider told last of what is left to spend.
    """
    return [
        ToldQuota(
            account=account,
            quota=Quota(left=left, unit=unit, resets_at=None if resets_at is None else rows.to_instant(resets_at)),
            told_at=rows.to_instant(told_at),
        )
        for account, left, unit, resets_at, told_at in session.rows("quotas")
    ]


def asset(session: Session, asset_id: str) -> Asset:
    """
    What is known of a reference image.

    Raises:
        UnknownAsset: There is none.
    """
    found = session.row("asset", id=asset_id)
    if found is None:
        raise UnknownAsset(f"no reference image has the id {asset_id}; upload it to /assets first")
    id_, pixels, width, height, size_bytes, media_type = found
    return Asset(id=id_, pixels=pixels, width=width, height=height, size_bytes=size_bytes, media_type=media_type)


def results(session: Session, *, coldest: int | None) -> tuple[list[CachedResult], int]:
    """
    The results used longest ago, at most `coldest` of them (None: all), and the bytes of all results together.
    """
    ((total,),) = session.rows("result_bytes")
    limit = _BEYOND if coldest is None else coldest
    return [rows.result_of(row) for row in session.rows("coldest_results", limit=limit)], total


def older_than(session: Session, instant: datetime, *, limit: int) -> list[CachedResult]:
    """
    Results saved before that instant, oldest first.
    """
    found = session.rows("old_results", instant=rows.to_number(instant), limit=limit)
    return [rows.result_of(row) for row in found]


def known(session: Session) -> frozenset[str]:
    """
    The relative paths of every file that the cache's index holds.
    """
    return frozenset(path for (path,) in session.rows("result_paths"))

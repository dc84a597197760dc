"""
The accounts as those above see them: how each stands, and the doors that lead to them.
"""

from collections.abc import Collection

from vidrelay.scheduler.account import Account
from vidrelay.scheduler.face import AccountStatus, DoorWay, WindowStatus
from vidrelay.scheduler.tools import Tools


def status_of(account: Account, tools: Tools) -> AccountStatus:
    """
    How an account stands.
    """
    now, monotonic = tools.clock.now(), tools.clock.monotonic()
    windows = []
    for window in account.windows():
        limit = account.limit(window, monotonic)
        key = account.name, window
        windows.append(
            WindowStatus(
                name=window,
                limit=limit.places,
                source=limit.source,
                running=len(tools.roster.holding(key)) + len(tools.roster.held(key, now)),
                queued=tools.roster.line.waiting(key),
            )
        )
    return AccountStatus(
        name=account.name,
        provider=account.plan.provider,
        windows=tuple(windows),
        pause=account.pause(now=now, monotonic=monotonic),
        is_default=account.name == tools.policy.default_account,
        key_from=account.plan.key_from,
        quota=tools.quotas.told(account.name),
    )


def doors_of(accounts: Collection[Account]) -> dict[str, DoorWay]:
    """
    The doors by the first segment of their addresses: an account's name, or that of a provider for the first of its
    accounts.
    """
    ways = [
        (
            account,
            DoorWay(
                account=account.name,
                door=account.plan.door,
                pass_through=account.plan.pass_through,
                door_key=account.plan.door_key,
            ),
        )
        for account in accounts
        if account.plan.door is not None
    ]
    first = {account.plan.provider: way for account, way in reversed(ways)}
    return first | {account.name: way for account, way in ways}

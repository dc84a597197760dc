"""
The user's settings that the rules and the scheduler go by, with the contract's defaults (section 7).
"""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class PollPolicy:
    """
    How often a running task is asked for: `first` and `cap` in seconds, `jitter` as a share of the interval.

    `learned` uses what past tasks of the model took, once there are enough. `not_found_grace`: for so many seconds
    after a create, "no such task" means not yet.
    """

    first: float = 2.0
    factor: float = 1.5
    cap: float = 15.0
    jitter: float = 0.2
    learned: bool = True
    not_found_grace: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePolicy:
    """
    How much the result cache keeps, how long, and how much free disk it leaves.

    Nothing is begun with less than `min_free_bytes`. A result that is paid for already may use three quarters of that,
    so that what was begun can be brought in.
    """

    max_bytes: int = 10 * 1000**3
    max_age: timedelta = timedelta(days=7)
    min_free_bytes: int = 1024**3

    def may_begin(self, free_bytes: int) -> bool:
        """
        Whether so much free disk is enough to make a paid task, or to leave behind when a picture is taken in.
        """
        return free_bytes >= self.min_free_bytes

    def may_fetch(self, free_bytes: int) -> bool:
        """
        Whether so much free disk is enough to leave behind when a paid result is fetched.
        """
        return free_bytes >= self.min_free_bytes // 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """
    Everything the scheduler can be told. `default_account` None: the only account, else none.
    """

    default_account: str | None = None
    dedupe_window: timedelta = timedelta(seconds=30)
    join_live: bool = True
    stale_after: timedelta = timedelta(hours=2)
    poll: PollPolicy = PollPolicy()
    cache: CachePolicy = CachePolicy()

"""
A provider's ledger: its customers, the jobs it made, and what it was asked, and when.
"""

from dataclasses import dataclass
from typing import Any

from vidrelay.core.adapter import Dedupe


@dataclass(slots=True, kw_only=True)
class Key:
    """
    One customer: how many unended jobs it may have, and how a repeated create is told apart for it.

    `complete_list` says that the provider's list is documented as complete; that of one that forgets is not.
    `tells_all`: one call tells how all its jobs are doing, as far as the list has caught up. `streams`: a call can last
    until there is news, of one job or of all. `uploads`: pictures are
    uploaded before a create names them.
    """

    name: str
    secret: str
    limit: int
    protection: Dedupe
    tells_limit: bool = False
    complete_list: bool = True
    tells_all: bool = False
    uploads: bool = False
    streams: bool = False


@dataclass(slots=True, kw_only=True)
class Job:
    """
    One remote job; instants are true seconds. `task` is the task of ours that it was made for.
    """

    id: str
    key: str
    task: str
    mark: str
    body: dict[str, Any]
    made_at: float
    run_seconds: float
    listed_at: float
    readable_at: float
    fails: bool = False
    stalls: bool = False
    state: str = "queued"
    started_at: float | None = None
    ends_at: float | None = None
    ended_at: float | None = None
    addresses: int = 0


@dataclass(slots=True, kw_only=True)
class Create:
    """
    One create call: `arrived` when its whole request had come, `job` what came of it, `told` the id in its answer,
    `delivered` whether that whole answer reached the relay; `life` is the relay's life that sent it, `attempt` which of
    the task's tries it was.
    """

    task: str
    key: str
    mark: str
    body: dict[str, Any]
    sent: float
    life: int
    attempt: int = 0
    arrived: float | None = None
    job: str | None = None
    repeated: bool = False
    told: str | None = None
    status: int | None = None
    delivered: bool = False


@dataclass(slots=True, kw_only=True)
class Poll:
    """
    One question after a job, for a task of ours; `at` is the monotonic second in which it was sent, `life` the relay's
    life that asked.
    """

    job: str
    task: str
    at: float
    life: int

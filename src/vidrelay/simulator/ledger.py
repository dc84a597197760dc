"""
What the pretend provider saw: every request, create and job, so that a test can hold vidrelay to the truth.

All times are seconds since the simulator began.
"""

import hashlib
from collections import Counter
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

from vidrelay.simulator.faults import Place


@dataclass(slots=True, kw_only=True)
class Seen:
    """
    One request. `status` is None where the connection was ended without a reply; `body` is the body's SHA-256.
    """

    at: float
    method: str
    path: str
    query: str
    key: str | None
    user_agent: str | None
    place: str | None
    body: str
    size_bytes: int
    job: str | None = None
    status: int | None = None
    fault: str | None = None
    retry_after: str | None = None


@dataclass(slots=True, kw_only=True)
class JobLine:
    """
    One job that was made; it stays here when the provider has forgotten it.
    """

    id: str
    key: str | None
    prompt: str
    model: str
    state: str
    created: float
    started: float | None = None
    ended: float | None = None
    polled: list[float] = field(default_factory=list)
    downloads: int = 0
    answered: bool = False


class Ledger:
    """
    The book. It counts, and never decides anything.
    """

    def __init__(self) -> None:
        self.requests: list[Seen] = []
        self.jobs: dict[str, JobLine] = {}
        self.max_at_once: Counter[str] = Counter()

    def crowd(self, key: str | None, unended: int) -> None:
        """
        Note how many unended jobs a key has just now.
        """
        name = key or "none"
        self.max_at_once[name] = max(self.max_at_once[name], unended)

    def told(self) -> dict[str, Any]:
        """
        The whole book as JSON.
        """
        creates = [seen for seen in self.requests if seen.place == Place.CREATE]
        accepted = list(self.jobs.values())
        return {
            "requests": [asdict(seen) for seen in self.requests],
            "jobs": [_job(line) for line in accepted],
            "creates": {
                "received": len(creates),
                "accepted": len(accepted),
                "answered": sum(line.answered for line in accepted),
                "refused": sum(1 for seen in creates if seen.job is None and seen.status is not None),
                "lost": sum(1 for seen in creates if seen.status is None),
            },
            "polls": sum(1 for seen in self.requests if seen.place == Place.POLL),
            "lists": sum(1 for seen in self.requests if seen.place == Place.LIST),
            "status429": sum(1 for seen in self.requests if seen.status == 429),
            "maxAtOnce": dict(self.max_at_once),
            "userAgents": sorted({seen.user_agent or "" for seen in self.requests}),
        }


def _job(line: JobLine) -> dict[str, Any]:
    polled = line.polled
    gaps = [round(later - earlier, 3) for earlier, later in pairwise(polled)]
    return {**asdict(line), "polls": len(polled), "gaps": gaps}


def mark(key: str | None) -> str | None:
    """
    A key as the book names it: the start of its hash, never the key.
    """
    return None if key is None else hashlib.sha256(key.encode()).hexdigest()[:12]

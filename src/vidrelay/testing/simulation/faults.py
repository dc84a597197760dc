"""
Chance, and the kinds of trouble that a seed has.
"""

import random
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

NETWORK = (
    "net.unsent",
    "net.reset_header",
    "net.reset_body",
    "net.lost_before",
    "net.late_arrival",
    "net.lost_after",
    "net.cut_reply",
    "net.hang",
    "net.slow",
)
PROVIDER = (
    "api.rate",
    "api.full",
    "api.auth",
    "api.balance",
    "api.error",
    "api.error_after",
    "api.html",
    "api.no_id",
    "api.odd_id",
    "api.same_id",
    "api.redirect",
    "api.rejected",
    "api.retry_after",
    "api.not_yet",
    "api.backwards",
    "api.odd_word",
    "api.job_fails",
    "api.job_cancelled",
    "api.job_stalls",
    "api.forgets",
    "api.gate_shrinks",
    "api.strangers",
)
RESULTS = (
    "file.dead",
    "file.error",
    "file.short",
    "file.cut",
    "file.html",
    "file.empty",
    "file.stall",
    "file.redirect",
    "file.no_length",
    "file.no_etag",
)
DISK = (
    "disk.full_store",
    "disk.busy_store",
    "disk.error_store",
    "disk.limit_store",
    "disk.limit_file",
    "disk.error_file",
    "disk.no_room",
    "disk.slow",
    "disk.lost_file",
)
FAILING_DISK = frozenset(DISK) - {"disk.slow", "disk.lost_file"}
PROCESS = ("die.kill", "die.point", "die.power", "die.stop", "die.again")
TIME = ("time.forward", "time.back", "time.frozen", "time.decade", "time.sleep")
APPS = ("app.gone", "app.resend", "app.conflict", "app.away")
STREAMS = ("stream.breaks", "stream.silent", "stream.garbled", "stream.restless", "stream.refused")
KINDS = (*NETWORK, *PROVIDER, *RESULTS, *DISK, *PROCESS, *TIME, *APPS, *STREAMS)


class Dice:
    """
    Seeded chance; each use has a stream of its own, so that one more draw here changes nothing there.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def stream(self, name: str) -> random.Random:
        """
        The stream of that name, from its beginning.
        """
        return random.Random(f"{self._seed}/{name}")


class Faults:
    """
    The seed's trouble: each kind that it has, with how often it comes.
    """

    def __init__(self, dice: Dice) -> None:
        choice = dice.stream("kinds")
        share = choice.choice((0.0, 0.15, 0.3, 0.5, 0.8))
        self.rates = {kind: choice.choice((0.02, 0.05, 0.15)) for kind in KINDS if choice.random() < share}
        self.seen: Counter[str] = Counter()
        self.calm = False
        self._streams = {kind: dice.stream(kind) for kind in self.rates}

    @property
    def disk_fails(self) -> bool:
        """
        Whether this seed's disk refuses work, which then may end in an error.
        """
        return not FAILING_DISK.isdisjoint(self.rates)

    def hit(self, kind: str, *, weight: float = 1.0, came: bool = True) -> bool:
        """
        Whether that trouble comes now; where `came` is false it is only meant to come, and `come` tells when it has.
        """
        rate = self.rates.get(kind)
        if rate is None or self.calm or self._streams[kind].random() >= rate * weight:
            return False
        if came:
            self.come(kind)
        return True

    def come(self, kind: str) -> None:
        """
        Count a trouble that has come about.
        """
        self.seen[kind] += 1

    def pick(self, kind: str, choices: Sequence[T]) -> T:
        """
        How that trouble looks this time.
        """
        return self._streams[kind].choice(choices)

    def between(self, kind: str, low: float, high: float) -> float:
        """
        How much of it there is this time.
        """
        return self._streams[kind].uniform(low, high)

"""
The 42 kill points: what each means, what is played until the relay dies there, and how it then stands on its disk.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kill import plays
from kill.plays import Play, Round


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """
    One point. `left`: a state that some task must be in afterwards; `none` where there is no task, None for any.
    """

    means: str
    play: Play
    left: str | None
    rounds: tuple[Round, ...]
    provider: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def fuses(self) -> set[str]:
        """
        The fuses that it uses.
        """
        return {one.fuse for one in self.rounds}


_BIG = {"clip_bytes": 3_000_000}
_STOPPABLE = {
    "provider": {"dialect": "vllm-omni", "run_seconds": 60.0},
    "settings": {"dialect": "vllm-omni", "window": 3},
}
_SMALL_CACHE = {"provider": {"clip_bytes": 700_000}, "settings": {"cache": 'max_bytes = "1MB"'}}
_KEPT = {"settings": {"relay": 'token = "keep"'}}


def _passings(fuse: str, *nths: int) -> tuple[Round, ...]:
    return tuple(Round(fuse=fuse, nth=nth) for nth in nths)


def _in_a_row(fuse: str, *deaths: int) -> tuple[Round, ...]:
    return tuple(Round(fuse=fuse, deaths=times) for times in deaths)


def _accept(name: str, means: str, left: str | None) -> Point:
    rounds = (Round(fuse=name), Round(fuse=name, nth=3), Round(fuse=name, deaths=3))
    return Point(means=means, play=plays.accept, left=left, rounds=rounds)


def _work(name: str, means: str, left: str, *nths: int, **more: Any) -> Point:
    return Point(means=means, play=plays.work, left=left, rounds=_passings(name, *(nths or (1, 2, 3))), **more)


def _cancel(name: str, means: str, left: str) -> Point:
    return Point(means=means, play=plays.cancel, left=left, rounds=_passings(name, 1, 2, 3), **_STOPPABLE)


def _evict(name: str, means: str) -> Point:
    return Point(means=means, play=plays.evict, left="done", rounds=_passings(name, 1, 2, 3), **_SMALL_CACHE)


def _start(name: str, means: str) -> Point:
    return Point(means=means, play=plays.later_start, left="done", rounds=_in_a_row(name, 1, 2, 5))


POINTS: Mapping[str, Point] = {
    "k1": _accept("k1", "a submit was read and judged; no transaction has begun", "none"),
    "k2": _accept("k2", "the task is inserted, not committed", "none"),
    "k3": _accept("k3", "the task is committed, nobody knows of it", "queued"),
    "k4": _accept("k4", "half of the answer to the app has left", None),
    "k5": _accept("k5", "the answer to the app has left", None),
    "k6": _work("k6", "a place is about to be asked for", "queued"),
    "k7": _work("k7", "the connection for the create is up (the intent comes first here)", "submitting", 1, 1, 1),
    "k8": _work("k8", "the intent is written, not committed", "queued"),
    "k9": _work("k9", "the intent is committed, nothing was sent", "submitting"),
    "k10": _work("k10", "the create's header has left", "submitting"),
    "k11": _work("k11", "half of the create's body has left", "submitting"),
    "k12": _work("k12", "the whole create has left", "submitting"),
    "k13": _work("k13", "the head of the create's answer is read", "submitting"),
    "k14": _work("k14", "the create's answer is read", "submitting"),
    "k15": _work(
        "k15", "the answer is understood and about to be saved (the id is all that is kept of it)", "submitting"
    ),
    "k16": _work("k16", "the remote id is written, not committed", "submitting"),
    "k17": _work("k17", "the remote id is committed", "running"),
    "k18": _work("k18", "a poll is about to be sent", "running"),
    "k19": _work("k19", "a poll's answer is read", "running"),
    "k20": _work("k20", "what a poll told is committed", None),
    "k21": _work("k21", "the file exists as .part", "downloading", 1, 2, 3, provider=_BIG),
    "k22": _work("k22", "a part of the file is written", "downloading", 1, 2, 3, provider=_BIG),
    "k23": _work("k23", "the file is whole, not durable", "downloading", 1, 2, 3, provider=_BIG),
    "k24": _work("k24", "the file is durable under the name .part", "downloading", 1, 2, 3, provider=_BIG),
    "k25": _work("k25", "the file has its own name", "downloading", 1, 2, 3, provider=_BIG),
    "k26": _work("k26", "its folder is durable", "downloading", 1, 2, 3, provider=_BIG),
    "k27": _work("k27", "done and the index are written, not committed", "downloading", 1, 2, 3, provider=_BIG),
    "k28": _work("k28", "done and the index are committed", "done", 1, 2, 3, provider=_BIG),
    "k29": _cancel("k29", "the wish to cancel is committed", "running"),
    "k30": _cancel("k30", "the provider has stopped the job", "running"),
    "k31": _cancel("k31", "cancelled is committed", "cancelled"),
    "k32": _evict("k32", "a result was chosen to go"),
    "k33": _evict("k33", "its files are gone (after its row, so that no row promises a file that is not there)"),
    "k34": _evict("k34", "its row is gone"),
    "k35": _start("k35", "the state directory is locked"),
    "k36": _start("k36", "the port is bound"),
    "k37": _start("k37", "relay.json is written under another name"),
    "k38": _start("k38", "relay.json has its name"),
    "k39": Point(
        means="in the middle of a migration: of a new database, and of one in use",
        play=lambda world, wanted: (
            plays.later_start(world, wanted) if wanted.fuse == "k39-later" else plays.first_start(world, wanted)
        ),
        left=None,
        rounds=(Round(fuse="k39", nth=5), Round(fuse="k39", nth=9, deaths=2), Round(fuse="k39-later", nth=2)),
    ),
    "k40": Point(
        means="what was left is taken up in part: one loss is committed, loaded, about to be swept",
        play=plays.reconcile,
        left=None,
        rounds=(Round(fuse="k40"), Round(fuse="k40-load", nth=2, deaths=5), Round(fuse="k40-sweep", deaths=2)),
    ),
    "k41": Point(
        means="a stop is asked for: at once, relay.json gone, the database about to be closed",
        play=plays.stop,
        left=None,
        rounds=(Round(fuse="k41"), Round(fuse="k41-beacon"), Round(fuse="k41-close")),
    ),
    "k42": Point(
        means="there is a new token: written under another name, kept, told",
        play=plays.rotation,
        left=None,
        rounds=(Round(fuse="k42-draft"), Round(fuse="k42", deaths=2), Round(fuse="k42-ready")),
        **_KEPT,
    ),
}

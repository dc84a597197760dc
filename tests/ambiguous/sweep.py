"""
One round: a relay whose accounts are all cases, and whose create calls break as the round says.
"""

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ambiguous.cases import Case, Round, Twins, cases
from ambiguous.line import Break, How, Lines, Shape, Side
from ambiguous.verdict import Fate, Seen, judge
from vidrelay.core.policy import CachePolicy, Policy, PollPolicy
from vidrelay.core.task import Request
from vidrelay.testing.simulation.clock import WorldClock
from vidrelay.testing.simulation.disk import DATABASE, Disk
from vidrelay.testing.simulation.faults import Dice, Faults
from vidrelay.testing.simulation.invariants import Invariants
from vidrelay.testing.simulation.journal import Journal
from vidrelay.testing.simulation.ledger import Key
from vidrelay.testing.simulation.life import AccountSetup, Ground, Life
from vidrelay.testing.simulation.loop import VirtualLoop
from vidrelay.testing.simulation.network import Network
from vidrelay.testing.simulation.provider import Provider
from vidrelay.testing.simulation.truth import Truth
from vidrelay.testing.simulation.world import _surprising

LONGEST_WAIT = 180.0
"""So many seconds the relay waits for an answer that does not come; only then it looks for what it lost."""

LOOKED_FOR = 700.0
SETTLED = 60.0
RUN_SECONDS = 3.0
AMID_THE_REPLY = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """
    What a round came to: `ends` counts how tasks ended, by kind of protection, fate of the create and end.
    """

    round: Round
    cases: int
    ends: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    wrong: tuple[str, ...] = ()
    shapes: frozenset[Shape] = frozenset()


class Ledger(Provider):
    """
    A provider with work for all, whose list is as late for each customer as its case says.
    """

    def __init__(self, lags: dict[str, float], **world: Any) -> None:
        super().__init__(**world)
        self.run_range = (RUN_SECONDS, RUN_SECONDS)
        self._count = 1000  # every id has the same number of digits
        self._lags = lags

    def listing_lag(self, key: str) -> float:
        """
        As late as its case says.
        """
        return self._lags[key]


def play(one: Round, folder: Path) -> Outcome:
    """
    Let the round's break happen to each of its cases, wait until everything has come to rest, and judge.
    """
    names = {f"account-{number:03}": case for number, case in enumerate(cases(one.lags))}
    ground = _ground(one, names, folder)
    invariants = Invariants(ground)
    try:
        with _surprising(invariants):
            _live(one, names, ground, invariants)
            return _outcome(one, names, ground, invariants)
    finally:
        invariants.closes()
        ground.loop.close()


def _live(one: Round, names: dict[str, Case], ground: Ground, invariants: Invariants) -> None:
    life = Life(ground, 1, invariants)
    life._ids = 1000
    ground.loop.run()
    relay = life.relay
    assert relay is not None, life.error

    async def submit() -> None:
        for name, case in names.items():
            for _ in range(1 if case.twins is Twins.NONE else 2):
                await relay.submit(Request(prompt="a boat", account=name, force_refresh=True))

    ground.loop.start(life.process, submit())
    waiting = LONGEST_WAIT if one.broken is not None and one.broken.how is How.SILENCE else 0.0
    ground.loop.run(seconds=waiting + LOOKED_FOR + SETTLED)
    invariants.check()
    ground.loop.start(life.process, life.stop(0.0))
    ground.loop.run(seconds=1.0)
    assert life.ended, "the relay did not stop"
    assert life.error is None, life.error


def _ground(one: Round, names: dict[str, Case], folder: Path) -> Ground:
    dice = Dice(1)
    faults = Faults(dice)
    faults.calm = True  # the line alone makes trouble
    loop = VirtualLoop()
    clock = WorldClock(loop)
    journal = Journal(lambda: f"{loop.time():.3f}")
    accounts = tuple(_account(name, case) for name, case in names.items())
    provider = Ledger(
        {name: case.lag for name, case in names.items()},
        keys=[account.key for account in accounts],
        workers=10_000,
        truth=clock.truth,
        faults=faults,
        chance=random.Random(1),
        journal=journal,
    )
    network: Network = Lines(
        framing=one.framing,
        breaks={name: _breaks(one.broken, case.twins) for name, case in names.items()},
        loop=loop,
        clock=clock,
        provider=provider,
        faults=faults,
        chance=random.Random(1),
        journal=journal,
    )
    return Ground(
        loop=loop,
        clock=clock,
        disk=Disk(folder, random.Random(1)),
        network=network,
        faults=faults,
        dice=dice,
        journal=journal,
        policy=Policy(
            default_account=accounts[0].key.name,
            poll=PollPolicy(learned=False),
            cache=CachePolicy(min_free_bytes=1),
        ),
        accounts=accounts,
    )


def _account(name: str, case: Case) -> AccountSetup:
    key = Key(name=name, secret=f"secret-of-{name}", limit=4, protection=case.protection, complete_list=case.complete)
    return AccountSetup(key=key, configured=2, can_cancel=True)


def _breaks(broken: Break | None, twins: Twins) -> tuple[Break | None, ...]:
    match twins:
        case Twins.NONE:
            return (broken,)
        case Twins.ALIKE:
            return (broken, broken)
        case Twins.TOLD:
            return (broken, None)
        case Twins.LOST:
            return (broken, Break(side=Side.REPLY, at=AMID_THE_REPLY))


def _outcome(one: Round, names: dict[str, Case], ground: Ground, invariants: Invariants) -> Outcome:
    lines, provider = ground.network, ground.network.provider
    assert isinstance(lines, Lines)
    truth = Truth(ground.disk.state / DATABASE)
    events = defaultdict[str, list[str]](list)
    for entry, name in truth.entries(0):
        events[entry.id].append(name)
    truth.close()
    wrong, ends = list(invariants.broken), Counter[tuple[str, str, str]]()
    jobs, by_account = provider.every_job(), {name: list[Seen]() for name in names}
    for task in invariants.tasks.values():
        by_account[task.account].append(
            Seen(
                task=task,
                fate=_fate(lines, task.id),
                events=tuple(events[task.id]),
                creates=tuple(create for create in provider.creates if create.task == task.id),
                jobs=tuple(job for job in jobs if job.task == task.id),
            )
        )
    for name, case in names.items():
        for seen, told, ending in judge(case, by_account[name]):
            ends[case.kind, seen.fate.value, ending] += 1
            wrong += [f"{case.told()}: {line}" for line in told]
    return Outcome(
        round=one,
        cases=len(names),
        ends=ends,
        wrong=tuple(wrong),
        shapes=frozenset(lines.shapes),
    )


def _fate(lines: Lines, task_id: str) -> Fate:
    """
    What became of the task's first create, by what was done to its line.
    """
    if task_id not in lines.met:
        return Fate.NEVER
    broken = lines.met[task_id]
    if broken is None:
        return Fate.TOLD
    if broken.side is Side.CONNECT:
        return Fate.UNSENT
    if broken.side is Side.REQUEST:
        return Fate.NOT_MADE
    first = next(create for create in lines.provider.creates if create.task == task_id)
    return Fate.TOLD if first.delivered else Fate.MADE

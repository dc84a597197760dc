"""
One seed: so many steps of work and trouble, what must hold checked after each, and the calm at the end.
"""

import logging
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path

from vidrelay.core.adapter import Dedupe
from vidrelay.core.policy import CachePolicy, Policy, PollPolicy
from vidrelay.core.task import State
from vidrelay.testing.simulation.apps import Apps
from vidrelay.testing.simulation.clock import WorldClock
from vidrelay.testing.simulation.disk import Disk
from vidrelay.testing.simulation.faults import Dice, Faults
from vidrelay.testing.simulation.invariants import Invariants
from vidrelay.testing.simulation.journal import Journal
from vidrelay.testing.simulation.ledger import Key
from vidrelay.testing.simulation.life import AccountSetup, Ground, Life
from vidrelay.testing.simulation.loop import VirtualLoop
from vidrelay.testing.simulation.network import Network
from vidrelay.testing.simulation.points import POINTS
from vidrelay.testing.simulation.provider import Provider
from vidrelay.testing.simulation.words import LONGEST_RUN

HOUR = 3600.0
ONCE = frozenset({POINTS["k39"], POINTS["k41"]})
MOST_STEPS = 1_000
"""A point that has not been passed by then, in steps, is one that this seed does not reach."""

DEATHS_AT_A_POINT = 6
PATIENCE = 6 * HOUR
"""With the trouble over, everything has ended after so many virtual seconds."""

DEATHS_IN_A_ROW = 5
GATE = (1, 1, 2, 3, 5)
AWAY = (800.0, 2_000.0)
"""So many virtual seconds nobody asks the relay for anything."""

TELLS_ALL = 0.4
"""So many of the accounts are asked for all their jobs by one call."""

STREAMS = 0.5
"""So many have calls that last until there is news."""

UPLOADS = 0.4
"""So many want pictures uploaded before a create names them."""

UNLISTED = frozenset({"api.forgets", "api.same_id"})
"""A provider that forgets jobs, or gives one task the id of another's, has no list that may be called complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """
    What a seed's run came to: `broken` are the violated invariants, `digest` the hash of all that happened.
    """

    seed: int
    steps: int
    digest: str
    broken: tuple[str, ...]
    tail: tuple[str, ...]
    faults: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)
    died_at: Counter[str] = field(default_factory=Counter)
    tasks: int = 0
    virtual_seconds: float = 0.0


class World:
    """
    Everything of one seed. `point` makes the relay die at that port event (points.py), again and again.
    """

    def __init__(self, seed: int, folder: Path, *, steps: int = 200, point: str | None = None) -> None:
        self._seed = seed
        self._steps = steps
        self._point = point
        self._taken = 0
        dice = Dice(seed)
        self._chance = dice.stream("world")
        faults = Faults(dice)
        loop = VirtualLoop()
        clock = WorldClock(loop)
        journal = Journal(lambda: f"{loop.count} {loop.time():.6f}")
        accounts = _accounts(
            dice.stream("accounts"),
            dice.stream("lists"),
            dice.stream("streams"),
            may_cancel=point is not None,
            complete_list=UNLISTED.isdisjoint(faults.rates),
        )
        provider = Provider(
            keys=[account.key for account in accounts],
            workers=self._chance.choice((1, 2, 8)),
            truth=clock.truth,
            faults=faults,
            chance=dice.stream("provider"),
            journal=journal,
        )
        network = Network(
            loop=loop, clock=clock, provider=provider, faults=faults, chance=dice.stream("network"), journal=journal
        )
        self.ground = Ground(
            loop=loop,
            clock=clock,
            disk=Disk(folder, dice.stream("disk")),
            network=network,
            faults=faults,
            dice=dice,
            journal=journal,
            policy=_policy(dice.stream("policy"), accounts),
            accounts=accounts,
        )
        self._slow = dice.stream("slow")
        self._late = dice.stream("late")
        loop.latency = self._work_seconds
        loop.late_cancel = lambda: self._late.random() < 0.5
        self._provider = provider
        self._limits = {account.key.name: account.key.limit for account in accounts}
        self.invariants = Invariants(self.ground)
        self.apps = Apps(self.ground, complain=self.invariants.complain, lifted=self.invariants.lifted)
        self.invariants.apps = self.apps
        self._lives = 0
        self._life: Life | None = None
        self._deaths_in_a_row = 0
        self.died_at: Counter[str] = Counter()

    def run(self) -> Outcome:
        """
        Live through it.
        """
        ground = self.ground
        with _surprising(self.invariants):
            try:
                while not self._done():
                    self._taken += 1
                    self._step()
                if not self.invariants.broken:
                    self._calm_down()
            finally:
                self._end()
                ground.loop.close()
        self._fill_in()
        return Outcome(
            seed=self._seed,
            steps=self._taken,
            digest=ground.journal.digest(),
            broken=tuple(self.invariants.broken),
            tail=tuple(ground.journal.lines),
            faults=ground.faults.seen,
            states=Counter({str(state): count for state, count in self.invariants.states.items()}),
            points=self.invariants.points,
            died_at=self.died_at,
            tasks=len(self.invariants.tasks),
            virtual_seconds=ground.clock.truth(),
        )

    def _done(self) -> bool:
        if self.invariants.broken:
            return True
        unpassed = self._point is not None and not self.died_at[self._point] and self._taken < MOST_STEPS
        return self._taken >= self._steps and not unpassed

    def _fill_in(self) -> None:
        journal, faults = self.ground.journal, self.ground.faults
        journal.note("end", sorted(faults.seen.items()), sorted(self.died_at.items()))

    # A step

    def _step(self) -> None:
        life = self._living()
        for _ in range(self._chance.choice((0, 1, 1, 2))):
            self.apps.act(life)
        self._trouble(life)
        self._pass()
        self._look()

    def _pass(self) -> None:
        """
        Let things run: to the end of what can run now, a few moments, or some time; or so long that a job which shows
        no sign of life is given up.
        """
        chance, faults = self._chance, self.ground.faults
        if faults.hit("app.away", weight=0.6):
            self.ground.loop.run(seconds=faults.between("app.away", *AWAY))
            return
        match chance.choice(("handles", "now", "short", "short", "long")):
            case "handles":
                self.ground.loop.run(handles=chance.randint(1, 150))
            case "now":
                self.ground.loop.run()
            case "short":
                self.ground.loop.run(seconds=chance.uniform(0.0, 6.0))
            case _:
                self.ground.loop.run(seconds=chance.uniform(5.0, 60.0))

    def _look(self) -> None:
        life = self._life
        if life is not None and not life.alive:
            self._bury(life)
        self.invariants.check()

    def _living(self) -> Life:
        """
        The relay's life, a new one if the last has ended.
        """
        life = self._life
        if life is not None and life.alive:
            if life.relay is not None:
                self._deaths_in_a_row = 0
                self.invariants.awake()
            return life
        self._lives += 1
        self.ground.journal.note("life", self._lives)
        self._life = life = Life(self.ground, self._lives, self.invariants)
        if self._point is not None and self.died_at[self._point] < DEATHS_AT_A_POINT:
            # Some pass it once in a life, if at all: the making of the database, say.
            rare = self._point in ONCE or self._taken >= self._steps
            life.arm(self._point, 1 if rare else self._chance.choice((1, 1, 2, 3)))
        elif 0 < self._deaths_in_a_row < DEATHS_IN_A_ROW and self.ground.faults.hit("die.again", weight=6.0):
            # Once more, while it takes up what the last one left.
            self.ground.loop.run(handles=self._chance.randint(1, 120))
            if life.alive:
                life.kill("again")
            self._look()
            return self._living()
        return life

    def _bury(self, life: Life) -> None:
        if life.died_at is not None:
            self._deaths_in_a_row += 1
            self.died_at[life.died_at] += 1
            if life.died_at == "power":
                self.ground.faults.come("die.power")
            elif life.died_at in POINTS.values() and self._point is None:
                self.ground.faults.come("die.point")
            self.ground.journal.note("died", life.died_at)
        self.invariants.closes()
        life.bury()
        self._life = None
        if life.error is not None:
            self.ground.journal.note("failed", repr(life.error))
        if life.error is not None and not self.ground.faults.disk_fails:
            self.invariants.complain(0, f"a life ended with {life.error!r}")

    # Trouble

    def _trouble(self, life: Life) -> None:
        hit = self.ground.faults.hit
        if hit("die.kill"):
            self.ground.loop.run(handles=self._chance.randint(0, 200))
            if life.alive:
                life.kill("kill")
            return
        if hit("die.point", came=False):
            life.arm(self._chance.choice(list(POINTS.values())), self._chance.choice((1, 1, 1, 2, 4)))
        if hit("die.power", came=False):
            life.cut_power()
        wanted = self._point == POINTS["k41"] and self._chance.random() < 0.1
        if life.relay is not None and (wanted or hit("die.stop")):
            self._stop(life, self._chance.choice((0.0, 0.1, 10.0, 400.0)))
        self._time_trouble()
        self._far_trouble()
        results = self.ground.disk.results()
        if results and hit("disk.lost_file"):
            name, path = next(iter(results.items()))
            Path(path).unlink()
            self.invariants.lost_files.add(name)

    def _stop(self, life: Life, grace: float) -> None:
        self.ground.loop.start(life.process, life.stop(grace))
        waited = 0.0
        while life.alive and waited < grace + 400.0:
            self.ground.loop.run(seconds=10.0)
            waited += 10.0
        if life.alive:
            self.invariants.complain(0, f"told to stop within {grace} s, it still ran {waited} s later")

    def _time_trouble(self) -> None:
        hit, clock, chance = self.ground.faults.hit, self.ground.clock, self._chance
        if hit("time.forward"):
            # Ten minutes are what a look-up takes, and so the jump that could hurt most.
            clock.jump(chance.choice((chance.uniform(30.0, 900.0), chance.uniform(900.0, 2 * 86_400.0))))
        if hit("time.back"):
            clock.jump(-chance.uniform(30.0, 86_400.0))
        if hit("time.decade", weight=0.5):
            clock.jump(3652 * 86_400.0)
        if hit("time.frozen"):
            clock.freeze()
        if hit("time.sleep"):
            self.ground.network.drop_all()
            clock.suspend(chance.uniform(60.0, 8 * HOUR))
        if chance.random() < 0.1:
            clock.right()

    def _far_trouble(self) -> None:
        hit, provider, chance = self.ground.faults.hit, self._provider, self._chance
        if hit("api.forgets", weight=0.4):
            provider.forget()
        if hit("api.strangers"):
            provider.crowd(chance.randint(1, 12))
        if hit("api.gate_shrinks"):
            for key in provider.keys.values():
                key.limit = chance.randint(1, self._limits[key.name])
        elif chance.random() < 0.2:
            self._open_gates()

    def _open_gates(self) -> None:
        for key in self._provider.keys.values():
            key.limit = self._limits[key.name]

    def _work_seconds(self) -> float:
        if not self.ground.faults.hit("disk.slow"):
            return 0.0
        return self._slow.uniform(0.0, 0.5)

    # The end

    def _calm_down(self) -> None:
        """
        With the trouble over everything ends, every place is free, and the cache is what its index says.
        """
        self.ground.faults.calm = True
        self._point = None
        self.ground.clock.right()
        self._open_gates()
        self._provider.hurry()
        if self._life is not None:
            self._life.spare()
        life = self._ready()
        self.apps.call(life, self.apps.calm)
        self._drain()
        for gives_up in (False, True):
            # What a person has made again may be lost again, where the provider forgot the first. And an answer of
            # before, on its way when all was well again, may have asked for a week.
            if not self.invariants.broken:
                self.apps.call(self._ready(), self.apps.calm)
                self._settle_all(gives_up=gives_up)
                self._drain()
        if self.invariants.broken:
            return
        self.invariants.invariant_8_all_end()
        self._run(LONGEST_RUN.total_seconds() + 1.0)
        self.invariants.invariant_7()
        if self._life is not None:
            self._stop(self._life, 10.0)
            self._look()
        self._ready()
        self._run(5.0)
        self.invariants.invariant_14()
        self.invariants.invariant_18(account.key.secret for account in self.ground.accounts)

    def _ready(self) -> Life:
        for _ in range(20):
            life = self._living()
            self._run(2.0)
            if life.relay is not None:
                return life
        raise AssertionError("the relay does not start, though nothing is wrong any more")

    def _run(self, seconds: float) -> None:
        self.ground.loop.run(seconds=seconds)
        self._look()

    def _drain(self) -> None:
        waited = 0.0
        while waited < PATIENCE and not self.invariants.broken:
            if all(task.ended or task.state is State.UNCERTAIN for task in self.invariants.tasks.values()):
                return
            self._run(20.0)
            waited += 20.0

    def _settle_all(self, *, gives_up: bool) -> None:
        if all(task.state is not State.UNCERTAIN for task in self.invariants.tasks.values()):
            return
        # Whatever can be found by itself has been found by then.
        self._run(700.0)
        self._drain()
        life = self._ready()
        for task in [task for task in self.invariants.tasks.values() if task.state is State.UNCERTAIN]:
            settle = self.apps.abandon if gives_up else self.apps.settle
            self.apps.call(life, partial(settle, task))
            self._run(15.0)

    def _end(self) -> None:
        life, self._life = self._life, None
        self.invariants.closes()
        if life is not None:
            if life.alive:
                life.kill("end")
            life.bury()


def _accounts(
    chance: random.Random, lists: random.Random, streams: random.Random, *, may_cancel: bool, complete_list: bool
) -> tuple[AccountSetup, ...]:
    kinds = chance.sample(list(Dedupe), chance.choice((1, 2, 3)))
    accounts = []
    for number, kind in enumerate(kinds, start=1):
        limit = chance.choice(GATE)
        key = Key(
            name=f"account-{number}",
            secret=f"secret-{number}-canary-{chance.randrange(10**9)}",
            limit=limit,
            protection=kind,
            tells_limit=chance.random() < 0.5,
            complete_list=complete_list,
            tells_all=lists.random() < TELLS_ALL,
            uploads=lists.random() < UPLOADS,
            streams=streams.random() < STREAMS,
        )
        configured = chance.choice((None, limit, max(1, limit - 1)))
        accounts.append(AccountSetup(key=key, configured=configured, can_cancel=may_cancel or chance.random() < 0.7))
    return tuple(accounts)


def _policy(chance: random.Random, accounts: tuple[AccountSetup, ...]) -> Policy:
    return Policy(
        default_account=accounts[0].key.name,
        join_live=chance.random() < 0.8,
        stale_after=LONGEST_RUN,
        poll=PollPolicy(learned=chance.random() < 0.5),
        cache=CachePolicy(
            max_bytes=chance.choice((20_000, 100_000, 10**9)),
            max_age=chance.choice((timedelta(minutes=20), timedelta(days=7))),
            min_free_bytes=1,
        ),
    )


class _Listener(logging.Handler):
    """
    Hears of exceptions that the relay did not expect.
    """

    def __init__(self, invariants: Invariants) -> None:
        super().__init__(logging.ERROR)
        self._invariants = invariants

    def emit(self, record: logging.LogRecord) -> None:
        """
        An exception that only trouble with the disk explains is no surprise where there is such trouble.
        """
        self._invariants.surprised(record)


@contextmanager
def _surprising(invariants: Invariants) -> Iterator[None]:
    logger, listener = logging.getLogger("vidrelay"), _Listener(invariants)
    level, spreads = logger.level, logger.propagate
    logger.addHandler(listener)
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(listener)
        logger.setLevel(level)
        logger.propagate = spreads

"""
What an app does until the relay dies: one play for each kind of point.
"""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from kill.world import BROKEN, World, must


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """
    One way to die at a point: the fuse, at which passing it blows, and how often in a row the relay dies of it.
    """

    fuse: str
    nth: int = 1
    deaths: int = 1


Play = Callable[[World, Round], None]


def accept(world: World, wanted: Round) -> None:
    """Submit until the relay dies of one; then of the same one again, sent again by an app that heard nothing."""
    for death in range(wanted.deaths):
        world.live((wanted.fuse, wanted.nth if death == 0 else 1))
        world.listen()
        for wish in [one for one in world.wanted if one.told is None]:
            world.ask(wish)
        while world.alive() and len(world.wanted) < wanted.nth + death:
            world.want(f"clip {len(world.wanted)}")
        world.died(wanted.fuse)


def work(world: World, wanted: Round) -> None:
    """Submit several, and let them go their way until the relay dies on it."""
    world.live((wanted.fuse, wanted.nth))
    world.listen()
    for number in range(max(2, wanted.nth)):
        if world.alive():
            world.want(f"clip {number}")
    world.died(wanted.fuse)


def cancel(world: World, wanted: Round) -> None:
    """Cancel running tasks one after another."""
    world.live((wanted.fuse, wanted.nth))
    world.listen()
    for number in range(3):
        world.until(world.want(f"clip {number}"), "running")
    for wish in world.wanted[: wanted.nth]:
        try:
            world.http.post(f"/task/{wish.told}/cancel").raise_for_status()
        except BROKEN:
            break
    world.died(wanted.fuse)


def evict(world: World, wanted: Round) -> None:
    """Make more clips than the cache holds."""
    world.live((wanted.fuse, wanted.nth))
    world.listen()
    for number in range(wanted.nth + 1):
        if world.alive():
            world.until(world.want(f"clip {number}"), "done")
    world.died(wanted.fuse)


def first_start(world: World, wanted: Round) -> None:
    """Begin in a directory where there is nothing."""
    for _ in range(wanted.deaths):
        world.begin((wanted.fuse, wanted.nth))
        world.died(wanted.fuse)


def later_start(world: World, wanted: Round) -> None:
    """Begin again after a kill in the midst of work: one done, some running, one in line; and die of that."""
    _busy_life(world)
    for _ in range(wanted.deaths):
        world.begin((wanted.fuse, wanted.nth))
        world.died(wanted.fuse)


def rotation(world: World, wanted: Round) -> None:
    """The same, with the kept token thrown away in between, so that there is a new one."""
    _busy_life(world)
    (world.state / "keep.json").unlink(missing_ok=True)
    for _ in range(wanted.deaths):
        world.begin((wanted.fuse, wanted.nth))
        world.died(wanted.fuse)


def _busy_life(world: World) -> None:
    world.live()
    world.listen()
    world.until(world.want("clip 0"), "done")
    for number in range(1, 4):
        world.want(f"clip {number}")
    world.kill()


def reconcile(world: World, wanted: Round) -> None:
    """Begin again after a kill during two creates whose answers are lost."""
    world.provider.control(faults=["create-slow=5:2"])
    world.live()
    world.listen()
    for number in range(3):
        world.want(f"clip {number}")
    deadline = time.monotonic() + 20
    while world.provider.ledger()["creates"]["received"] < 2:
        must(time.monotonic() < deadline, "the two creates never came")
        time.sleep(0.05)
    world.kill()
    for _ in range(wanted.deaths):
        world.begin((wanted.fuse, wanted.nth))
        world.died(wanted.fuse)


def stop(world: World, wanted: Round) -> None:
    """Ask it to stop in the midst of work."""
    world.live((wanted.fuse, wanted.nth))
    world.listen()
    for number in range(3):
        world.want(f"clip {number}")
    world.until(world.wanted[0], "running", "downloading", "done")
    world.child.send_signal(signal.SIGTERM)
    world.died(wanted.fuse)

"""
One kill from beginning to end.
"""

from dataclasses import dataclass
from pathlib import Path

from kill import verdict
from kill.points import POINTS
from kill.world import Wrong, world


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """
    What became of it: how often the relay was killed at the point, and what was wrong afterwards, if anything.
    """

    point: str
    round: int
    kills: int
    wrong: str | None = None


def run(name: str, number: int, folder: Path) -> Outcome:
    """
    Play the point's round of that number (from 0), kill, look, go on, look, stop, look.
    """
    point = POINTS[name]
    wanted = point.rounds[number % len(point.rounds)]
    with world(folder, provider=dict(point.provider), **point.settings) as made:
        try:
            point.play(made, wanted)
            verdict.of_the_dead(made, point.left)
            made.cancelled = verdict.wishes_to_cancel(made)
            made.live()
            verdict.of_the_living(made)
            made.stop()
            verdict.of_the_end(made)
        except Wrong as wrong:
            return Outcome(point=name, round=number, kills=made.kills, wrong=str(wrong))
        return Outcome(point=name, round=number, kills=made.kills)

"""
What is combined: a break of the create call, and for each of them every protection and every twin, with late lists.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import product

from ambiguous.line import Break, Framing, How, Shape, Side
from vidrelay.core.adapter import Dedupe

LAGS = (0.0, 5.0, 15.0, 45.0, 120.0, 240.0, 300.0, 450.0, 590.0, 600.0)
"""How many seconds after its making a job is in the provider's list."""

LAGS_AT_AN_EDGE = (0.0, 120.0, 300.0, 600.0)
LOOKED_UP = (Dedupe.CLIENT_ID, Dedupe.LIST)


class Twins(Enum):
    """
    Who stands beside the task: nobody, or an equal one whose create breaks alike, or is answered, or is carried out
    without an answer.
    """

    NONE = "none"
    ALIKE = "alike"
    TOLD = "told"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """
    One account: how its provider tells a repeated create apart, how late its list is and whether it is documented as
    complete, and the twin.
    """

    protection: Dedupe
    complete: bool
    lag: float
    twins: Twins

    @property
    def kind(self) -> str:
        """
        The protection in a word; a list that may leave out something is a kind of its own.
        """
        return self.protection.value if self.complete else f"{self.protection.value}_incomplete"

    @property
    def looked_up(self) -> bool:
        """
        Whether a lost create is looked for.
        """
        return self.protection in LOOKED_UP

    def told(self) -> str:
        """
        The case in words.
        """
        return f"{self.kind}, list {self.lag:g} s late, twin {self.twins.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """
    One break, for every case with lists so late.
    """

    broken: Break | None
    framing: Framing = Framing.LENGTH
    lags: tuple[float, ...] = LAGS_AT_AN_EDGE

    def told(self) -> str:
        """
        The round in words.
        """
        if self.broken is None:
            return f"unbroken, {self.framing.value}"
        side, at, how = self.broken.side.value, self.broken.at, self.broken.how.value
        return f"{how} after byte {at} of the {side}, {self.framing.value}"


def cases(lags: tuple[float, ...]) -> tuple[Case, ...]:
    """
    Every protection with every twin, and where a lost create is looked for with each of these lags.
    """
    return tuple(
        Case(protection=protection, complete=complete, lag=lag, twins=twins)
        for protection, twins in product(Dedupe, Twins)
        for lag in (lags if protection in LOOKED_UP else (0.0,))
        for complete in ((True, False) if protection in LOOKED_UP else (True,))
    )


def rounds(shapes: Mapping[Framing, Shape]) -> list[Round]:
    """
    A round for every byte of the request and of the answer; of the rarer framings for every tenth.

    At the edges (the first bytes, the end of the head, the last bytes) it breaks in every way; elsewhere the ways and
    the lags take turns.
    """
    shape = shapes[Framing.LENGTH]
    found = [Round(broken=Break(side=Side.CONNECT))]
    found += _side(Side.REQUEST, range(shape.request), _edges(shape.request_head, shape.request - 1), Framing.LENGTH)
    for framing, shape in shapes.items():
        every = 1 if framing is Framing.LENGTH else 10
        edges = _edges(shape.reply_head, shape.reply)
        found += _side(Side.REPLY, range(0, shape.reply + 1, every), edges, framing)
    return found


def _edges(head: int, last: int) -> set[int]:
    return {0, 1, head - 1, head, last - 1, last}


def _side(side: Side, places: range, edges: set[int], framing: Framing) -> Iterator[Round]:
    ways, half = tuple(How), len(LAGS) // 2
    for turn, at in enumerate(sorted({*places, *edges})):
        edge = at in edges
        lags = LAGS_AT_AN_EDGE if edge else (LAGS[turn % half], LAGS[turn % half + half])
        for how in ways if edge else (ways[turn % len(ways)],):
            yield Round(broken=Break(side=side, at=at, how=how), framing=framing, lags=lags)


def sample(shapes: Mapping[Framing, Shape]) -> list[Round]:
    """
    A few of them, one late list each.
    """
    shape = shapes[Framing.LENGTH]
    places = (
        (Side.REQUEST, 0, How.RESET, 600.0),
        (Side.REPLY, shape.reply - 1, How.END, 600.0),
        (Side.CONNECT, 0, How.RESET, 0.0),
        (Side.REQUEST, shape.request_head, How.SILENCE, 45.0),
        (Side.REPLY, shape.reply_head, How.SILENCE, 300.0),
        (Side.REPLY, shape.reply, How.RESET, 15.0),
    )
    return [Round(broken=Break(side=side, at=at, how=how), lags=(lag,)) for side, at, how, lag in places]

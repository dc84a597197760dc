"""
Numbers that look random and are the same for the same words, on every machine.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import TypeVar

T = TypeVar("T")

_MASK = (1 << 64) - 1


class Dice:
    """
    A stream of numbers decided by the words it is made from (splitmix64 over their hash).

    `Dice("clouds", seed)` and `Dice("hills", seed)` are independent, so adding one drawing does not change another.
    """

    def __init__(self, *words: object) -> None:
        text = "\x1f".join(str(word) for word in words)
        self._state = int.from_bytes(sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")

    def number(self) -> float:
        """
        The next number, from 0 up to but not 1.
        """
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return ((mixed ^ (mixed >> 31)) >> 11) / (1 << 53)

    def between(self, low: float, high: float) -> float:
        """
        A number from `low` up to `high`.
        """
        return low + (high - low) * self.number()

    def whole(self, low: int, high: int) -> int:
        """
        A whole number from `low` to `high`, both included.
        """
        return low + int((high - low + 1) * self.number())

    def pick(self, choices: Sequence[T]) -> T:
        """
        One of the choices.
        """
        return choices[self.whole(0, len(choices) - 1)]

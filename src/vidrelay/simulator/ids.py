"""
The shapes that ids of jobs have at several providers, made of 64 hex digits that the engine draws.
"""

from collections.abc import Callable


def uuid(drawn: str) -> str:
    """
    A version 4 UUID.
    """
    return f"{drawn[:8]}-{drawn[8:12]}-4{drawn[13:16]}-a{drawn[17:20]}-{drawn[20:32]}"


def digits(first: str, *, count: int = 19) -> Callable[[str], str]:
    """
    Makes ids of so many decimal digits, the first of which is `first`.
    """
    return lambda drawn: f"{first}{int(drawn[:16], 16) % 10 ** (count - 1):0{count - 1}d}"

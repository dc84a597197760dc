"""
What goes wrong on purpose: `PLACE-EFFECT[=ARG][:COUNT]`, armed for the next COUNT calls of that place.

PLACE is create, poll, list, content, delete (also: cancel), upload, account (limits, balances) or any. COUNT is 1
unless given; `always` never runs out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from vidrelay.core.errors import ConfigError


class Place(StrEnum):
    """
    Which kind of call it is.
    """

    CREATE = "create"
    POLL = "poll"
    LIST = "list"
    CONTENT = "content"
    DELETE = "delete"
    UPLOAD = "upload"
    ACCOUNT = "account"


BEFORE = {
    "drop": "the connection ends without a reply; nothing was done",
    "error": "a 5xx (or the given status); nothing was done",
    "rate": "429, too many requests; the argument is Retry-After as it is sent (default 1)",
    "busy": "429, too many jobs running",
    "auth": "401",
    "balance": "429 with the code insufficient_quota",
    "moderation": "400, refused by policy",
    "code": "refused with the provider's own error code, as in create-code=1303",
    "redirect": "307 to the given address (default: another host)",
}
"""Effects in place of doing what was asked."""

AFTER = {
    "drop-after": "it is done, and the connection ends without a reply",
    "error-after": "it is done, and answered with a 5xx (or the given status)",
    "slow": "it is done at once and answered after so many seconds (default 1)",
    "html": "200 with a page of HTML",
    "truncated": "the reply's JSON breaks off in the middle",
    "types": "every value of the reply has another type",
    "no-id": "the reply has no id",
    "bad-id": "the reply's id is no id",
    "same-id": "the reply's id is the first job's",
    "word": "the reply's status is this word",
    "inline": "a finished job's clip stands in the reply itself, whatever was asked for (google's)",
}
"""Effects on the answer, after it was done."""

CONTENT = {
    "cut": "the file breaks off in the middle, short of its Content-Length",
    "cut-chunked": "the file breaks off in the middle, without a Content-Length",
    "short": "half the file, told as if it were whole",
    "empty": "no bytes at all",
    "gone": "410",
    "no-range": "Range is ignored",
    "changed": "a different file under the same address, with another ETag",
}
"""Effects on a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """
    One thing that goes wrong: where (None: anywhere), what, its argument, and how often (None: always).
    """

    place: Place | None
    effect: str
    argument: str | None = None
    count: int | None = 1

    @classmethod
    def parse(cls, spec: str) -> Self:
        """
        Read `PLACE-EFFECT[=ARG][:COUNT]`.

        Raises:
            ConfigError: There is no such place or effect, or the count is no number.
        """
        head, equals, argument = spec.partition("=")
        rest, colon, counted = (argument if equals else head).rpartition(":")
        if colon and (counted == "always" or (counted.isascii() and counted.isdigit())):
            head, argument = (head, rest) if equals else (rest, "")
        else:
            counted = "1"
        where, _, effect = head.strip().partition("-")
        place = None if where == "any" else next((one for one in Place if one == where), None)
        if place is None and where != "any":
            raise ConfigError(f"fault {spec!r}: {where!r} is no place; use any, {', '.join(Place)}.")
        known = {**BEFORE, **AFTER, **(CONTENT if place is Place.CONTENT else {})}
        if effect not in known:
            raise ConfigError(f"fault {spec!r}: {effect!r} is no effect there; use one of {', '.join(known)}.")
        if effect in ("error", "error-after") and argument and not (argument.isdigit() and 400 <= int(argument) < 600):
            raise ConfigError(f"fault {spec!r}: {argument!r} is no error status.")
        if effect == "slow" and argument:
            try:
                float(argument)
            except ValueError as error:
                raise ConfigError(f"fault {spec!r}: {argument!r} is no number of seconds.") from error
        count = None if counted == "always" else int(counted)
        return cls(place=place, effect=effect, argument=argument or None, count=count)

    @property
    def before(self) -> bool:
        """
        Whether it comes in place of what was asked.
        """
        return self.effect in BEFORE

    @property
    def told(self) -> str:
        """
        The fault as it is written, without its count.
        """
        return f"{self.place or 'any'}-{self.effect}" + (f"={self.argument}" if self.argument else "")


class ArmedFaults:
    """
    The faults that wait for their calls, first armed first used.
    """

    def __init__(self, specs: Sequence[str] = ()) -> None:
        self._waiting: list[tuple[Fault, int | None]] = []
        self.arm(specs)

    def arm(self, specs: Sequence[str]) -> None:
        """
        Add faults.

        Raises:
            ConfigError: One cannot be read; none is added.
        """
        parsed = [Fault.parse(spec) for spec in specs]
        self._waiting += [(fault, fault.count) for fault in parsed if fault.count != 0]

    def clear(self) -> None:
        """
        Disarm everything.
        """
        self._waiting.clear()

    def take(self, place: Place) -> Fault | None:
        """
        The fault for this call, used up by one.
        """
        for index, (fault, left) in enumerate(self._waiting):
            if fault.place in (place, None):
                if left == 1:
                    del self._waiting[index]
                elif left is not None:
                    self._waiting[index] = (fault, left - 1)
                return fault
        return None

    def told(self) -> list[str]:
        """
        What is still armed, with the counts left.
        """
        return [f"{fault.told}:{'always' if left is None else left}" for fault, left in self._waiting]

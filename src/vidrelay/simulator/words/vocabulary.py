"""
What a vocabulary must be able to say, and the shapes it says it in.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from vidrelay.simulator.engine import Job, Turned
from vidrelay.simulator.faults import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """
    One call as the engine needs it. `query` and `fields` hold the last value of each name; `pictures` counts files.

    `key` is what the client sent, `host` the address it used, for addresses in replies.
    """

    place: Place
    job_id: str | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    pictures: int = 0
    key: str | None = None
    host: str = ""
    open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """
    What to reply: JSON, or the clip of `clip` (its `index`-th output). `job` is the one it is about, for the ledger.
    """

    status: int = 200
    data: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    clip: Job | None = None
    index: int = 0
    job: Job | None = None


class Words(Protocol):
    """
    One provider's paths, fields and errors.
    """

    def route(self, method: str, path: str) -> tuple[Place, str | None, bool] | None:
        """
        Which call that is, of which job, and whether it needs no key; None where there is no such path.
        """
        ...

    def key(self, headers: Mapping[str, str]) -> str | None:
        """
        The key a client sent.
        """
        ...

    def answer(self, call: Call) -> Answer:
        """
        Do what is asked.
        """
        ...

    def turned(self, turned: Turned) -> Answer:
        """
        Say that a request was turned away by the rate or the window.
        """
        ...

    def error(self, status: int, message: str, *, code: str | None = None) -> Answer:
        """
        Say an error in the provider's form.
        """
        ...

    def word(self, data: Any, word: str) -> Any:
        """
        The same reply with another status word in it.
        """
        ...

    def identity(self, data: Any, job_id: str | None) -> Any:
        """
        The same reply with another id in it, or with none.
        """
        ...

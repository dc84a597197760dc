"""
How a bug is planted: its table, and the one tool for replacing parts of the imported package.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """
    One bug: what it is, what plants it, and the tests of which at least one must fail.
    """

    means: str
    plant: Callable[[], None]
    caught_by: tuple[str, ...]


BUGS: dict[str, Bug] = {}


def bug(*caught_by: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Enter the function into the table under its own name; its docstring says what the bug is."""

    def enter(function: Callable[[], None]) -> Callable[[], None]:
        BUGS[function.__name__] = Bug(means=(function.__doc__ or "").strip(), plant=function, caught_by=caught_by)
        return function

    return enter


def plant(name: str) -> None:
    """Plant the bug of that name in this process."""
    BUGS[name].plant()


def around(owner: Any, name: str) -> Callable[[Callable[..., Any]], None]:
    """Replace a function by one that is given the original first; a coroutine stays one."""
    original = getattr(owner, name)

    def put(function: Callable[..., Any]) -> None:
        @wraps(original)
        def replaced(*args: Any, **kwargs: Any) -> Any:
            return function(original, *args, **kwargs)

        @wraps(original)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            return await function(original, *args, **kwargs)

        setattr(owner, name, awaited if iscoroutinefunction(original) else replaced)

    return put

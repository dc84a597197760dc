"""
A running relay, spoken to from another process: typed, async, with a thin blocking face.

`calls.py` is `Client`, `blocking.py` its blocking face. `connection.py` finds the relay: `beacon.py` is `relay.json`,
`start.py` starts a detached relay, `dial.py` makes only connections whose other end has proved itself. `views.py` holds
what answers are read into, `saving.py` a result on its way to a file; `trust.py` says what a program must trust to
reach its https listener. May import clock and core only.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vidrelay.client.blocking import BlockingClient
    from vidrelay.client.calls import Client, open_client
    from vidrelay.client.views import TaskView

__all__ = ["BlockingClient", "Client", "TaskView", "open_client"]

_HOMES = {
    "BlockingClient": "vidrelay.client.blocking",
    "Client": "vidrelay.client.calls",
    "TaskView": "vidrelay.client.views",
    "open_client": "vidrelay.client.calls",
}


def __getattr__(name: str) -> object:
    """
    Load a name when it is asked for: the relay itself needs `relay.json` from here, but no HTTP client.
    """
    import importlib  # noqa: PLC0415 only for this

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)

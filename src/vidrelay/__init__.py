"""
vidrelay: a local relay between apps and AI video-generation APIs.

The public names: `open_client` and `Client` speak to a running relay (`BlockingClient` does so for programs that are
not async), `open_relay` runs one inside this process, and every error is a `VidrelayError`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vidrelay.assemble import open_relay
    from vidrelay.client.blocking import BlockingClient
    from vidrelay.client.calls import Client, open_client
    from vidrelay.client.views import TaskView
    from vidrelay.core.errors import (
        BadMedia,
        ConfigError,
        DatabaseUnusable,
        DeadAddress,
        DiskFull,
        IdempotencyConflict,
        InvalidRequest,
        OutboundRefused,
        RelayUnavailable,
        ReplyTooLarge,
        RequestError,
        ResultGone,
        StoreBusy,
        StoreError,
        TooLarge,
        TransportError,
        UnknownAccount,
        UnknownAsset,
        UnknownTask,
        UnsupportedMedia,
        VidrelayError,
        WrongState,
    )
    from vidrelay.core.task import Reference, Request, Resolution, State
    from vidrelay.scheduler.face import Sender
    from vidrelay.scheduler.relay import Relay

_HOMES = {
    "open_relay": "vidrelay.assemble",
    "BlockingClient": "vidrelay.client.blocking",
    "Client": "vidrelay.client.calls",
    "open_client": "vidrelay.client.calls",
    "TaskView": "vidrelay.client.views",
    "Reference": "vidrelay.core.task",
    "Request": "vidrelay.core.task",
    "Resolution": "vidrelay.core.task",
    "State": "vidrelay.core.task",
    "Relay": "vidrelay.scheduler.relay",
    "Sender": "vidrelay.scheduler.face",
}

__all__ = [
    "BadMedia",
    "BlockingClient",
    "Client",
    "ConfigError",
    "DatabaseUnusable",
    "DeadAddress",
    "DiskFull",
    "IdempotencyConflict",
    "InvalidRequest",
    "OutboundRefused",
    "Reference",
    "Relay",
    "RelayUnavailable",
    "ReplyTooLarge",
    "Request",
    "RequestError",
    "Resolution",
    "ResultGone",
    "Sender",
    "State",
    "StoreBusy",
    "StoreError",
    "TaskView",
    "TooLarge",
    "TransportError",
    "UnknownAccount",
    "UnknownAsset",
    "UnknownTask",
    "UnsupportedMedia",
    "VidrelayError",
    "WrongState",
    "open_client",
    "open_relay",
]


def __getattr__(name: str) -> object:
    """
    Load a public name when it is asked for, so that whoever needs one part does not pay for the others.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "vidrelay.core.errors")), name)

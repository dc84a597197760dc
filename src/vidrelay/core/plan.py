"""
One account as the scheduler knows it, filled in by `assemble.py`.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from vidrelay.core.adapter import Adapter
from vidrelay.core.door import Door
from vidrelay.core.network import Downloader, Transport


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSetting:
    """
    How many tasks an account may have at its provider: by model, with `*` for the rest; None asks the provider, else 1.
    """

    limits: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """
    What a model costs: a fixed amount a clip, or an amount a second.
    """

    amount: str
    currency: str
    per_second: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountPlan:
    """
    One account as the scheduler knows it. `server` names the far end, so that accounts which share its jobs are known
    by it: scheme, host and port, or empty. `drop_idle` closes its transport's connections that no call uses;
    `key_from` says in words where its key was found, None where it has none; `door` is its provider's interface for
    SDKs, where that has one; `pass_through`: what that does not answer is passed on to the provider;
    `door_key`: it is opened by a key in the path too.
    """

    name: str
    provider: str
    adapter: Adapter
    transport: Transport
    downloader: Downloader
    server: str = ""
    window: WindowSetting = WindowSetting()
    prices: Mapping[str, Pricing] = field(default_factory=dict)
    drop_idle: Callable[[], Awaitable[None]] | None = None
    key_from: str | None = None
    door: Door | None = None
    pass_through: bool = False
    door_key: bool = False

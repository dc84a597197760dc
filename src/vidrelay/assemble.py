"""
The one place that says which class fills which port, where chance and ids come from, and what an account is made of.
"""

import asyncio
import logging
import os
import random  # noqa: TID251 the one place that may
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from importlib import import_module
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from vidrelay.clock import SystemClock
from vidrelay.config import AccountSettings, Config, NetworkSettings, read_key
from vidrelay.config.settings import PREVIEW
from vidrelay.core.adapter import Adapter
from vidrelay.core.clock import Clock
from vidrelay.core.errors import ConfigError, DiskFull, StoreError
from vidrelay.core.network import Transport
from vidrelay.core.plan import AccountPlan
from vidrelay.core.policy import Policy
from vidrelay.files.assets import LocalAssets
from vidrelay.files.local import LocalFiles, require_folder
from vidrelay.providers.json_api import AdapterSettings, JsonAdapter
from vidrelay.providers.registry import dialect_of, make_adapter, make_door
from vidrelay.scheduler.relay import Relay
from vidrelay.store.backup import back_up
from vidrelay.store.emergency import EmergencyStore
from vidrelay.store.sqlite import SqliteStore
from vidrelay.transport.download import HttpDownloader

if TYPE_CHECKING:
    from vidrelay.transport.http import HttpTransport

DOWNLOADS_AT_ONCE = 2
STOP_SECONDS = 200.0
BACKUP_SECONDS = 3600.0
BACKUP_LOOK_SECONDS = 60.0
"""Short beside the hour, for many a relay runs for minutes only."""
WATCH_SECONDS = 60.0

logger = logging.getLogger(__name__)


def version() -> str:
    """
    The version of vidrelay that is installed.
    """
    return installed_version("vidrelay")


def user_agent() -> str:
    """
    What every provider is told about who calls.
    """
    return f"vidrelay/{version()}"


def adapter_for(account: AccountSettings, environ: Mapping[str, str], clock: Clock) -> Adapter:
    """
    The account's adapter, with its key in it; what it makes of the time, it makes of that clock's.

    Raises:
        ConfigError: The key is missing, or the settings do not suit the provider; says the file and line.
    """
    key = read_key(account.key, account=account.name, environ=environ)
    dialect = _dialect(account)
    settings = AdapterSettings(key=key, base_url=account.base_url, dialect=dialect, now=clock.now)
    try:
        return make_adapter(account.provider, settings)
    except ConfigError as error:
        if account.place is None:
            raise
        raise error.at(account.place) from error


def _dialect(account: AccountSettings) -> str | None:
    variable = account.key.name if account.key is not None and account.key.kind == "env" else None
    return account.dialect or dialect_of(account.provider, variable)


def transport_for(
    account: AccountSettings,
    network: NetworkSettings,
    adapter: Adapter,
    *,
    asset_path: Callable[[str], Path],
    count: Callable[..., None] = lambda **_: None,
    own_ports: Callable[[], Collection[int]] = lambda: (),
) -> "HttpTransport":
    """
    The account's own way out, behind its own gate.

    Raises:
        ConfigError: An address in its settings is of no use.
    """
    # The HTTP engine is the largest import of all, and a relay that only previews has no use for it.
    from vidrelay.transport.gate import Gate  # noqa: PLC0415
    from vidrelay.transport.http import HttpTransport  # noqa: PLC0415

    if adapter.traits.follows:
        # With the account and not with the first call: an upgrade may exchange files under a relay that runs.
        import_module("vidrelay.transport.streams")
    gate = Gate(
        (*adapter.traits.hosts, *account.allow_hosts),
        base_url=account.base_url,
        private_network=account.private_network,
        fake_ip=network.fake_ip,
        own_ports=own_ports,
    )
    return HttpTransport(
        gate,
        asset_path=asset_path,
        user_agent=user_agent(),
        ca_file=network.ca_file,
        proxy=network.proxy,
        count=count,
    )


@asynccontextmanager
async def assembled(
    config: Config,
    state_dir: Path,
    *,
    environ: Mapping[str, str] | None = None,
    own_ports: Callable[[], Collection[int]] = lambda: (),
    is_locked: Callable[[], bool] = lambda: True,
) -> AsyncIterator[Relay]:
    """
    A relay of real parts on that state directory, loaded but not running; everything is closed at the end.

    Args:
        config: The settings.
        state_dir: Where its database, cache and assets are; the caller holds its lock.
        environ: Where keys may come from; None: the process's own environment.
        own_ports: The relay's own ports, which no account may reach.
        is_locked: Whether the caller still holds the directory's lock.

    Raises:
        ConfigError: An account's key is missing, or its settings do not suit its provider.
        RelayUnavailable: The place of the cache or of the pictures is taken by something else.
        StoreError: The database cannot be used.
    """
    for name in ("cache", "assets"):
        require_folder(state_dir / name)
    environ = os.environ if environ is None else environ
    clock = SystemClock()
    adapters = {account.name: adapter_for(account, environ, clock) for account in config.accounts}
    files = LocalFiles(state_dir / "cache")
    slots = asyncio.Semaphore(DOWNLOADS_AT_ONCE)
    async with AsyncExitStack() as stack:
        store = await SqliteStore.open(state_dir / "relay.db", is_locked=is_locked)
        stack.push_async_callback(store.aclose)
        careful = EmergencyStore(store, state_dir)
        await careful.recover()
        assets = LocalAssets(
            state_dir / "assets",
            store,
            forbidden=_own_files(config, state_dir),
            has_room=lambda count: config.policy.cache.may_begin(files.free_bytes() - count),
        )
        plans = []
        for account in config.accounts:
            adapter = adapters[account.name]
            transport: Transport
            if account.provider == PREVIEW:
                transport, drop_idle = _studio(state_dir, assets, clock), None
            else:
                transport = way_out = transport_for(
                    account,
                    config.network,
                    adapter,
                    asset_path=assets.location,
                    count=store.count,
                    own_ports=own_ports,
                )
                drop_idle = way_out.drop_idle
            stack.push_async_callback(transport.aclose)
            plans.append(
                AccountPlan(
                    name=account.name,
                    provider=account.provider,
                    adapter=adapter,
                    transport=transport,
                    downloader=HttpDownloader(
                        transport,
                        files,
                        clock,
                        slots=slots,
                        has_room=lambda count: config.policy.cache.may_fetch(files.free_bytes() - count),
                    ),
                    server=far_end(adapter, account.base_url),
                    window=account.window,
                    prices=account.prices,
                    drop_idle=drop_idle,
                    key_from=account.key.told if account.key is not None else None,
                    door=make_door(account.provider, _dialect(account)),
                    pass_through=account.pass_through,
                    door_key=account.door_key,
                )
            )
        relay = Relay(
            store=careful,
            book=store,
            index=store,
            files=files,
            assets=assets,
            clock=clock,
            chance=random.random,
            new_id=lambda: str(uuid.uuid4()),
            plans=plans,
            policy=config.policy,
        )
        await relay.load()
        stack.push_async_callback(
            _ended,
            asyncio.get_running_loop().create_task(
                _keep_backed_up(
                    state_dir / "relay.db",
                    clock,
                    has_room=lambda count: config.policy.cache.may_begin(files.free_bytes() - count),
                )
            ),
        )
        stack.push_async_callback(_ended, asyncio.get_running_loop().create_task(_keep_watch(store, clock)))
        yield relay


def far_end(adapter: Adapter, base_url: str | None) -> str:
    """
    What accounts at one server have in common, however each writes its base URL, or leaves out the provider's own.
    """
    parts = urlsplit(adapter.base if isinstance(adapter, JsonAdapter) else base_url or "")
    return f"{parts.scheme}://{parts.netloc}".lower() if parts.netloc else ""


async def _keep_watch(store: SqliteStore, clock: Clock) -> None:
    """
    See every minute that the database is still there: a relay with nothing to store would not notice.
    """
    while True:
        await clock.sleep(WATCH_SECONDS)
        with suppress(DiskFull, StoreError):
            # The store logs it, and saves what can be saved; the next change ends the relay.
            await store.require_ours()


async def _keep_backed_up(database: Path, clock: Clock, *, has_room: Callable[[int], bool]) -> None:
    """
    Copy the database once an hour if it has changed, whatever becomes of the copies.
    """
    while True:
        await clock.sleep(BACKUP_LOOK_SECONDS)
        copying = partial(back_up, database, clock.now(), every_seconds=BACKUP_SECONDS, has_room=has_room)
        try:
            await asyncio.to_thread(copying)
        except (DiskFull, StoreError) as problem:
            logger.warning("backup.failed why=%s", problem.message)
        except Exception:
            logger.exception("backup.failed")


async def _ended(work: "asyncio.Task[None]") -> None:
    """
    End work that goes on for ever.
    """
    work.cancel()
    await asyncio.wait([work])


def _studio(state_dir: Path, assets: LocalAssets, clock: Clock) -> Transport:
    from vidrelay.providers.preview.studio import PreviewStudio  # noqa: PLC0415 only where it is wanted

    return PreviewStudio(scratch=state_dir / "preview", asset_path=assets.location, clock=clock)


def _own_files(config: Config, state_dir: Path) -> list[Path]:
    """
    What no app may name as a picture: the state directory and every key file.
    """
    keys = [account.key for account in config.accounts if account.key is not None]
    return [state_dir, *(Path(key.name).expanduser() for key in keys if key.kind == "file")]


@asynccontextmanager
async def open_relay(state_dir: str | Path, *, config: Config | None = None) -> AsyncIterator[Relay]:
    """
    A running relay inside this process, without the HTTP interface.

    Args:
        state_dir: Its own directory; no other relay may use it meanwhile.
        config: The settings; None: the built-in preview account alone.

    Raises:
        ConfigError: An account's key is missing, or its settings do not suit its provider.
        RelayUnavailable: The place of the cache or of the pictures is taken by something else.
        StoreError: The database cannot be used.
    """
    place = Path(state_dir).absolute()  # noqa: ASYNC240 once, before anything runs
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    settings = config or Config(
        policy=Policy(default_account=PREVIEW), accounts=(AccountSettings(name=PREVIEW, provider=PREVIEW),)
    )
    async with assembled(settings, place) as relay, asyncio.TaskGroup() as group:
        group.create_task(relay.run())
        try:
            yield relay
        finally:
            await relay.stop(grace=STOP_SECONDS)

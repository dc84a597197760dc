"""
`doctor`: looks at everything a relay needs, and says what to do where something is missing. Needs no relay.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from vidrelay.cli.terminal import Exit, Where, bulk, console, out_json, shown
from vidrelay.core.errors import ConfigError, OutboundRefused, TransportError, VidrelayError

if TYPE_CHECKING:
    from vidrelay.config import AccountSettings, Config
    from vidrelay.core.network import Transport
    from vidrelay.core.policy import CachePolicy

Verdict = Literal["ok", "note", "wrong"]

_HOST_SECONDS = 10.0
_CLOCK_SECONDS = 120.0
_LITTLE_SPACE = 5 * 1024**3
_NOBODY = datetime(2020, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """
    One thing looked at: how it is, and what to do about it. `exits` is the status that a wrong one ends with.
    """

    subject: str
    verdict: Verdict
    detail: str
    advice: str | None = None
    exits: Exit = Exit.UNAVAILABLE


def doctor(
    context: typer.Context,
    *,
    offline: Annotated[bool, typer.Option("--offline", help="Leave the network alone.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """
    Check the directory, lock, clock, disk, configuration, keys and network, and say what to do.
    """
    findings = asyncio.run(_examine(context.obj, offline=offline, show=not as_json))
    if as_json:
        out_json(
            [
                {"subject": one.subject, "verdict": one.verdict, "detail": one.detail, "advice": one.advice}
                for one in findings
            ]
        )
    raise typer.Exit(min((one.exits for one in findings if one.verdict == "wrong"), default=Exit.DONE))


async def _examine(where: Where, *, offline: bool, show: bool) -> list[Finding]:
    findings = []
    async for finding in _look(where, offline=offline):
        findings.append(finding)
        if show:
            _draw(finding)
    return findings


def _draw(finding: Finding) -> None:
    from rich.text import Text

    marks = {"ok": ("ok  ", "green"), "note": ("note", "yellow"), "wrong": ("bad ", "bold red")}
    mark, style = marks[finding.verdict]
    line = Text.assemble((mark, style), "  ", (f"{finding.subject}: ", "bold"), shown(finding.detail))
    screen = console()
    screen.print(line, soft_wrap=True)
    if finding.advice:
        screen.print(Text(f"      {shown(finding.advice)}"), soft_wrap=True)


async def _look(where: Where, *, offline: bool) -> AsyncIterator[Finding]:
    for finding in _directory(where.state_dir):
        yield finding
    for finding in _inside(where.state_dir):
        yield finding
    yield await _relay(where)
    yield _time(datetime.now(UTC))  # noqa: TID251 the wall clock itself is what is looked at
    config: Config | None = None
    try:
        config = _load(where)
    except ConfigError as error:
        yield Finding(
            subject="configuration", verdict="wrong", detail=error.message, advice=error.hint, exits=Exit.USAGE
        )
        return
    yield _configuration(config)
    for half in config.half_set:
        yield Finding(
            subject="environment", verdict="note", detail=half, advice="Set the other one too, or unset this one."
        )
    yield _disk(where.state_dir, config.policy.cache)
    for account in config.accounts:
        async for finding in _account(account, config, offline=offline):
            yield finding


def _directory(state_dir: Path) -> Iterator[Finding]:
    if not state_dir.exists():
        yield Finding(subject="state directory", verdict="ok", detail=f"{state_dir} (made at the first start)")
        return
    mode = state_dir.stat().st_mode & 0o777
    writable = os.access(state_dir, os.W_OK | os.X_OK)
    if not state_dir.is_dir() or not writable:
        yield Finding(
            subject="state directory",
            verdict="wrong",
            detail=f"{state_dir} cannot be written",
            advice="Name another: --state-dir DIR, or VIDRELAY_STATE_DIR.",
        )
    elif mode & 0o077 and hasattr(os, "getuid"):
        yield Finding(
            subject="state directory",
            verdict="note",
            detail=f"{state_dir} is open to other users (mode {mode:o})",
            advice=f"chmod 700 '{state_dir}' (the relay does so when it starts)",
        )
    else:
        yield Finding(subject="state directory", verdict="ok", detail=str(state_dir))


def _inside(state_dir: Path) -> Iterator[Finding]:
    """
    What is wrong with what lies in the state directory.
    """
    from vidrelay.files.local import require_folder
    from vidrelay.store.emergency import JOURNAL_NAME
    from vidrelay.store.reserve import Journal

    if not state_dir.is_dir():
        return
    for name in ("cache", "assets"):
        try:
            require_folder(state_dir / name)
        except (VidrelayError, OSError) as error:
            yield Finding(subject=name, verdict="wrong", detail=str(error), advice=getattr(error, "hint", None))
    try:
        answers = len(Journal(state_dir / JOURNAL_NAME).lines())
    except OSError as error:
        yield Finding(subject=JOURNAL_NAME, verdict="wrong", detail=str(error), advice="Make it readable, or move it.")
        return
    if answers:
        yield Finding(
            subject=JOURNAL_NAME,
            verdict="note",
            detail=f"{answers} answers of providers that may not be in the database; what they tell of may be paid for",
            advice="The relay takes them over when it starts, and names what it does not know. For that, put back the "
            "relay.db that it belongs to; or look for the job at the provider, and then delete the file.",
        )


async def _relay(where: Where) -> Finding:
    from vidrelay.client.calls import open_client
    from vidrelay.daemon.state import LOCK_NAME, StateLock

    if not (where.state_dir / LOCK_NAME).exists():
        return Finding(subject="relay", verdict="ok", detail="none is running")
    lock = StateLock(where.state_dir)
    try:
        if lock.take():
            lock.release()
            return Finding(subject="relay", verdict="ok", detail="none is running; the lock is free")
    except VidrelayError as error:
        return Finding(subject="relay", verdict="wrong", detail=error.message, advice=error.hint)
    try:
        async with open_client(where.state_dir, start=False) as client:
            health = await client.health()
            return Finding(
                subject="relay", verdict="ok", detail=f"running at {client.url}, version {health.get('version')}"
            )
    except VidrelayError as error:
        return Finding(
            subject="relay",
            verdict="wrong",
            detail=f"a process holds the lock, and no relay answers ({error.message})",
            advice="If it has just been started, wait; else end that process, then start: vidrelay serve",
        )


def _disk(state_dir: Path, policy: "CachePolicy") -> Finding:
    place = next(path for path in (state_dir, *state_dir.parents) if path.exists())
    free = shutil.disk_usage(place).free
    if not policy.may_begin(free):
        return Finding(
            subject="disk",
            verdict="wrong",
            detail=f"{bulk(free)} free; below {bulk(policy.min_free_bytes)} nothing paid is begun",
            advice="Free some room, or name another state directory.",
        )
    verdict: Verdict = "note" if free < _LITTLE_SPACE else "ok"
    return Finding(subject="disk", verdict=verdict, detail=f"{bulk(free)} free")


def _time(now: datetime) -> Finding:
    if now < _NOBODY:
        return Finding(
            subject="clock",
            verdict="wrong",
            detail=f"it says {now:%Y-%m-%d}, which is long past",
            advice="Set the machine's clock: TLS certificates look invalid until then.",
        )
    return Finding(subject="clock", verdict="ok", detail=f"{now:%Y-%m-%d %H:%M:%S} UTC")


def _load(where: Where) -> "Config":
    from vidrelay.config import config_file, load_config
    from vidrelay.providers.registry import key_envs

    path, named = config_file(where.config, os.environ)
    return load_config(path, must_exist=named, environ=os.environ, key_envs=key_envs())


def _configuration(config: "Config") -> Finding:
    names = ", ".join(f"{account.name} ({account.provider})" for account in config.accounts)
    default = config.policy.default_account
    told = f"{config.path or 'no file, everything as it comes'}; accounts: {names}; default: {default or 'none'}"
    if default is None:
        return Finding(
            subject="configuration",
            verdict="note",
            detail=told,
            advice="Requests must name their account, or set default_account in [relay].",
        )
    return Finding(subject="configuration", verdict="ok", detail=told)


async def _account(account: "AccountSettings", config: "Config", *, offline: bool) -> AsyncIterator[Finding]:
    from vidrelay.assemble import adapter_for, transport_for
    from vidrelay.clock import SystemClock
    from vidrelay.config.settings import PREVIEW

    subject = f"account {account.name}"
    try:
        adapter = adapter_for(account, os.environ, SystemClock())
    except ConfigError as error:
        yield Finding(subject=subject, verdict="wrong", detail=error.message, advice=error.hint, exits=Exit.USAGE)
        return
    if account.provider == PREVIEW:
        yield Finding(subject=subject, verdict="ok", detail="renders on this machine, needs no key and no network")
        return
    key = f"the key is there ({account.key.told})" if account.key else "without a key"
    yield Finding(subject=subject, verdict="ok", detail=key)
    if adapter.key_note:
        yield Finding(subject=subject, verdict="note", detail=adapter.key_note)
    if offline:
        return
    urls = [account.base_url] if account.base_url else [f"https://{host}/" for host in adapter.traits.hosts[:1]]
    transport = transport_for(account, config.network, adapter, asset_path=lambda _: Path())
    try:
        for url in urls:
            yield await _host(subject, url, transport)
    finally:
        await transport.aclose()


async def _host(subject: str, url: str, transport: "Transport") -> Finding:
    from vidrelay.core.messages import HttpRequest

    shown_url = url.split("?", 1)[0]
    try:
        # Without the key: that somebody answers is all that is asked.
        async with transport.send(HttpRequest(method="GET", url=url), timeout=_HOST_SECONDS) as reply:
            skew = _skew(reply.headers)
            detail = f"{shown_url} answers (status {reply.status})"
    except OutboundRefused as error:
        return Finding(subject=subject, verdict="wrong", detail=error.message, advice=error.hint, exits=Exit.USAGE)
    except TransportError as error:
        return Finding(
            subject=subject,
            verdict="wrong",
            detail=f"{shown_url} cannot be reached: {error.message}",
            advice=error.hint or "Check the network; behind a proxy, set proxy and ca_file in [network].",
        )
    if abs(skew) > _CLOCK_SECONDS:
        return Finding(
            subject=subject,
            verdict="note",
            detail=f"{detail}, and its clock and this one are {abs(skew):.0f} s apart",
            advice="Set the machine's clock.",
        )
    return Finding(subject=subject, verdict="ok", detail=detail)


def _skew(headers: Mapping[str, str]) -> float:
    """
    Seconds between the host's clock and ours; 0 where it does not tell.
    """
    try:
        told = parsedate_to_datetime(headers["date"])
    except (KeyError, ValueError, TypeError):
        return 0.0
    if told.tzinfo is None:
        return 0.0
    return (told - datetime.now(UTC)).total_seconds()  # noqa: TID251 the wall clock itself is what is looked at

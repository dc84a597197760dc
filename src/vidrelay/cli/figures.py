"""
`stats` and `accounts`: what the relay has done, and how each account stands.
"""

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

import typer

from vidrelay.cli.tasks import AsJson, finish
from vidrelay.cli.terminal import Exit, Where, bulk, out_json, say, shown, span, table
from vidrelay.core.errors import ConfigError
from vidrelay.core.wire import SEGMENTS

TAKEN = {True: "yes", False: "no", None: "not known"}
_BAR_WIDTH = 36
_EIGHTHS = " ▏▎▍▌▋▊▉"


def stats(context: typer.Context, as_json: AsJson = False) -> None:
    """
    Show counters, what was saved, and where the time goes.
    """
    finish(_stats(context.obj, as_json))


async def _stats(where: Where, as_json: bool) -> Exit:
    async with where.client() as client:
        told = await client.stats()
    if as_json:
        out_json(told)
        return Exit.DONE
    rows = [
        (name, bulk(value) if name == "bytesDownloaded" else f"{value:,}")
        for name, value in told.items()
        if isinstance(value, int) and not isinstance(value, bool)
    ]
    table(("counter", "so far"), rows, right=frozenset({1}))
    saved = told.get("saved")
    if isinstance(saved, dict):
        say(f"\nsaved: {_saved(saved)}")
    segments = told.get("segments")
    if isinstance(segments, dict) and segments:
        say()
        for line in segment_lines(segments):
            say(line)
    return Exit.DONE


def _saved(saved: Mapping[str, Any]) -> str:
    clips = saved.get("clips", 0)
    money = saved.get("money") or []
    sums = [f"{one.get('amount')} {one.get('currency')}" for one in money if isinstance(one, dict)]
    return f"{clips} clips not paid twice" + (f", {shown(' and '.join(sums))}" if sums else "")


def segment_lines(segments: Mapping[str, Any]) -> list[str]:
    """
    Each model's segments as bars: how long the middle one takes, and beside it what nine in ten do not exceed.
    """
    lines = []
    for model, found in segments.items():
        spreads = {name: found[name] for name in SEGMENTS if isinstance(found, dict) and _is_spread(found.get(name))}
        if not spreads:
            continue
        longest = max(spread["median"] for spread in spreads.values())
        lines.append(f"{shown(str(model))}  median, and p90 at the right")
        for name, spread in spreads.items():
            drawn = bar(spread["median"] / longest if longest else 0.0, _BAR_WIDTH)
            lines.append(f"  {name:<9}{drawn:<{_BAR_WIDTH}} {span(spread['median']):>12} {span(spread['p90']):>12}")
    return lines


def _is_spread(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(name), int | float) for name in ("median", "p90"))


def bar(share: float, width: int) -> str:
    """
    A bar of that share of the width, to an eighth of a character; what is not nothing shows.
    """
    eighths = max(1 if share > 0 else 0, round(share * width * 8))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def accounts(
    context: typer.Context,
    resume: Annotated[str | None, typer.Option(help="Lift this account's pause.", metavar="ACCOUNT")] = None,
    check: Annotated[bool, typer.Option("--check", help="Try each account's key without paying.")] = False,
    as_json: AsJson = False,
) -> None:
    """
    Show each account's windows and pauses, and where its key was found.
    """
    finish(_checks(context.obj, resume, as_json) if check else _accounts(context.obj, resume, as_json))


async def _accounts(where: Where, resume: str | None, as_json: bool) -> Exit:
    async with where.client() as client:
        found = [await client.resume(resume)] if resume else await client.accounts()
    if as_json:
        out_json({"accounts": found})
        return Exit.DONE
    _tell_halves(where)
    rows = []
    for account in found:
        windows = account.get("windows") or [{}]
        for number, window in enumerate(windows):
            rows.append(
                (
                    _name(account) if number == 0 else "",
                    str(account.get("provider", "")) if number == 0 else "",
                    str(window.get("name", "")),
                    f"{window.get('running', 0)} of {window.get('limit', '?')}",
                    str(window.get("source", "")),
                    str(window.get("queued", 0)),
                    _left(account) if number == 0 else "",
                    _pause(account) if number == 0 else "",
                    shown(str(account.get("keyFrom") or "none")) if number == 0 else "",
                )
            )
    table(("account", "provider", "window", "taken", "limit from", "in line", "left", "pause", "key from"), rows)
    return Exit.DONE


async def _checks(where: Where, resume: str | None, as_json: bool) -> Exit:
    async with where.client() as client:
        accounts = [await client.resume(resume)] if resume else await client.accounts()
        # Providers have nothing to do with each other, and one that hangs should not hold up the rest.
        found = await asyncio.gather(*(client.check(str(account.get("name", ""))) for account in accounts))
    if as_json:
        out_json({"checks": found})
    else:
        _tell_halves(where)
        rows = []
        for account, one in zip(accounts, found, strict=True):
            key = shown(str(account.get("keyFrom") or "none"))
            rows.append((_name(account), key, TAKEN[one.get("ok")], shown(str(one.get("detail", "")))))
        table(("account", "key from", "taken", "what the provider says"), rows)
    return Exit.FAILED if any(one.get("ok") is False for one in found) else Exit.DONE


def _tell_halves(where: Where) -> None:
    """
    Say which providers have no account since one half of their key alone is set, where this command sees it.
    """
    from vidrelay.config import config_file, load_config
    from vidrelay.providers.registry import key_envs

    path, named = config_file(where.config, os.environ)
    with suppress(ConfigError):
        for half in load_config(path, must_exist=named, environ=os.environ, key_envs=key_envs()).half_set:
            say(half)


def _name(account: Mapping[str, Any]) -> str:
    return str(account.get("name", "")) + (" (default)" if account.get("isDefault") else "")


def _left(account: Mapping[str, Any]) -> str:
    quota = account.get("quota")
    if not quota:
        return "not told"
    left = f"{quota['left']:,.2f}".removesuffix(".00") + " " + shown(str(quota.get("unit", "")))
    return left + (f", full again {quota['resetsAt']}" if quota.get("resetsAt") else "")


def _pause(account: Mapping[str, Any]) -> str:
    if not account.get("paused"):
        return "none"
    until = account.get("until")
    words = [str(account[name]) for name in ("scope", "why", "detail") if account.get(name)]
    return ": ".join(words) + (f", until {until}" if until else ", until you lift it")

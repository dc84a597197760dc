"""
What durations, sizes and prices mean when they are written in a setting.
"""

import re
from datetime import timedelta
from decimal import Decimal

from vidrelay.core.plan import Pricing
from vidrelay.core.task import Money

_DURATION = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}

_SIZE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) ?(B|KB|kB|MB|GB|TB|KiB|MiB|GiB|TiB)")
_BYTES = {
    "B": 1,
    "KB": 1000,
    "kB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "TB": 1000**4,
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
    "TiB": 1024**4,
}

_MONEY = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ([A-Z]{3})")


def duration(text: str) -> timedelta:
    """
    Read `30s`, `1.5h`, `7d`: a number and one of ms, s, m, h, d.

    Raises:
        ValueError: It is written otherwise; says how.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError('must be a number with its unit, such as "30s", "5m", "2h" or "7d"')
    return timedelta(seconds=float(match[1]) * _SECONDS[match[2]])


def size(text: str) -> int:
    """
    Read `10GB` or `512 MiB` as bytes: KB, MB, GB, TB count in thousands, KiB and so on in 1024s.

    Raises:
        ValueError: It is written otherwise; says how.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError('must be a number with its unit, such as "500MB", "10GB" or "2TiB"')
    return int(Decimal(match[1]) * _BYTES[match[2]])


def money(text: str) -> Money:
    """
    Read `20 USD`: an exact amount and a currency's three letters.

    Raises:
        ValueError: It is written otherwise; says how.
    """
    match = _MONEY.fullmatch(text)
    if match is None:
        raise ValueError('must be an amount and a currency, such as "20 USD"')
    return Money(amount=Decimal(match[1]), currency=match[2])


def price(text: str) -> Pricing:
    """
    Read `0.35 USD` (a clip) or `0.10 USD/s` (a second of clip).

    Raises:
        ValueError: It is written otherwise; says how.
    """
    per_second = text.endswith("/s")
    try:
        told = money(text.removesuffix("/s"))
    except ValueError as error:
        raise ValueError('must be a price a clip or a second, such as "0.35 USD" or "0.10 USD/s"') from error
    return Pricing(amount=str(told.amount), currency=told.currency, per_second=per_second)


def said(span: timedelta) -> str:
    """
    A duration in the words that `duration` reads.
    """
    seconds = span.total_seconds()
    for unit in ("d", "h", "m"):
        if seconds >= _SECONDS[unit] and seconds % _SECONDS[unit] == 0:
            return f"{seconds / _SECONDS[unit]:g}{unit}"
    return f"{seconds:g}s"

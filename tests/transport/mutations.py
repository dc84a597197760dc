"""
Tricky addresses and what thousands of small changes make of them, sent through a real transport that leads nowhere.
"""

import random
from dataclasses import dataclass
from pathlib import Path

from vidrelay.core.errors import OutboundRefused, TransportError
from vidrelay.core.messages import HttpRequest
from vidrelay.transport.gate import Gate
from vidrelay.transport.http import HttpTransport

from .corpus import TRICKY
from .servers import PUBLIC, Names, Network

HOSTS = ("api.example.com", "*.cdn.example.com")
PIECES = [
    *(
        "\\",
        "\t",
        "\n",
        "\r",
        "\0",
        "@",
        ":",
        "/",
        "//",
        "?",
        "#",
        "%",
        "%2e",
        "%00",
        "%40",
        "%2f",
        ".",
        "..",
        "[",
        "]",
    ),
    *(
        " ",
        "．",
        "。",
        "／",
        "：",
        "＠",
        "\u200b",
        "\u202e",
        "\u00ad",
        "é",
        "0x",
        "0",
        "1",
        "127.0.0.1",
        "::1",
        "443",
        ";",
    ),
    *(
        "api.example.com",
        "@api.example.com",
        ".api.example.com",
        "x.cdn.example.com",
        "evil.com",
        "localhost",
        "https:",
    ),
]


@dataclass
class Tried:
    """
    How many addresses were tried; where names were looked up and connections made that were not allowed; and how many
    changed ones led to a host of the list, as they may.
    """

    tricky: int = 0
    mutations: int = 0
    listed: int = 0
    lookups: int = 0
    connections: int = 0


async def try_all(*, mutations: int, seed: int) -> Tried:
    """
    Send a call to every tricky address, and to so many that were made of them by one to four changes.
    """
    tried, chance = Tried(), random.Random(seed)
    every = sorted(set(TRICKY))
    for url in every:
        await _try(url, tried, may_be_listed=False)
    tried.tricky = len(every)
    made: set[str] = set()
    while len(made) < mutations:
        made.add(_mutated(chance, chance.choice(every)))
    for url in sorted(made):
        await _try(url, tried, may_be_listed=True)
    tried.mutations = len(made)
    return tried


def _mutated(chance: random.Random, url: str) -> str:
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(url))
        to = at + chance.choice((0, 0, 1, 1, 4))
        url = url[:at] + chance.choice([*PIECES, ""]) + url[to:]
    return url


async def _try(url: str, tried: Tried, *, may_be_listed: bool) -> None:
    names, network = Names(api_example_com=[PUBLIC]), Network()
    gate = Gate(HOSTS, resolve=names)
    transport = HttpTransport(gate, asset_path=lambda _: Path(), user_agent="x", network=network)
    try:
        async with transport.send(HttpRequest(method="GET", url=url), timeout=1):
            raise AssertionError("nobody can have answered")
    except OutboundRefused:
        pass
    except TransportError:
        # It was let through to a name lookup: right only for a name that the list holds.
        tried.listed += may_be_listed
    finally:
        await transport.aclose()
    foreign = [name for name in names.asked if not _is_listed(name)]
    tried.lookups += len(foreign) if may_be_listed else len(names.asked)
    tried.connections += sum(place != (PUBLIC, 443) or not may_be_listed for place in network.dialled)


def _is_listed(name: str) -> bool:
    return name == "api.example.com" or (name.endswith(".cdn.example.com") and name.isascii())

"""
What a host's name tells without asking anybody.
"""

import ipaddress
import re
from urllib.parse import urlsplit

from vidrelay.core.addresses import is_public

_UNWRITABLE = re.compile(r"[\x00-\x1f\x7f\\\s]")
_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)


def is_loopback_host(host: str) -> bool:
    """
    Whether the name or address, as text without brackets, is this machine's own and reached by no other.
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def web_address_fault(url: str) -> str | None:
    """
    Why a provider cannot be told to fetch this address, or None where it can: `https://`, no name or password, and a
    host that is not written as this machine or as an address off the internet. What a name leads to is not looked up.
    """
    if _UNWRITABLE.search(url):
        return "has a blank, a backslash or a control character in it"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "is no address"
    if parts.scheme != "https":
        return "must begin with https://"
    if "@" in parts.netloc:
        return "must not hold a name or password"
    if not host or port == 0:
        return "is no address"
    if "[" not in parts.netloc and _NAME.fullmatch(host.removesuffix(".")) is None:
        return "has a host that is not written as the network writes it"
    return None if _is_outside(host.removesuffix(".")) else "must name a host on the internet"


def _is_outside(host: str) -> bool:
    try:
        return is_public(ipaddress.ip_address(host))
    except ValueError:
        pass
    last = host.rpartition(".")[2]
    # Where the last part is a number, resolvers read the whole as an IPv4 address, in whatever spelling.
    return last != "localhost" and _NUMBER.fullmatch(last) is None

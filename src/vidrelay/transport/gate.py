"""
Which hosts, ports and addresses an account may reach; everything else is refused before a name is looked up.

A URL is read once, by one strict grammar, and only the outcome of that reading is used afterwards. What parsers are
known to disagree on (backslashes, control characters, encoded or non-ASCII hosts, short or octal numbers as addresses)
is refused, not repaired.
"""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Address, IPv6Address, ip_address

from vidrelay.core.addresses import FAKE, is_loopback, is_private, is_public
from vidrelay.core.errors import ConfigError, OutboundRefused, TransportError

MAX_URL_CHARACTERS = 16_384

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Looks up a name's addresses, as text; raises OSError where it cannot."""

_URL = re.compile(
    r"(?P<scheme>[A-Za-z]+)://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(?::(?P<port>[0-9]+))?"
    r"(?:(?P<path>/[^#]*)(?:#.*)?)?",
    re.ASCII,
)
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.ASCII)
_ENCODE = re.compile(r"[^\x21-\x7e]|[\"<>]")
_DEFAULT_PORTS = {"https": 443, "http": 80}


async def system_resolve(host: str, port: int) -> list[str]:
    """
    Ask the machine's own resolver.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """
    A URL as it was read: what to connect to and what to ask for. `target` is the path and query as sent.

    `direct` marks a `base_url` on this machine or the private network, which is never reached through a proxy.
    """

    scheme: str
    host: str
    port: int
    target: str
    direct: bool = False

    @property
    def origin(self) -> tuple[str, str, int]:
        """
        Scheme, host and port: credentials given for one origin are not for another.
        """
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """
        The Host header's value.
        """
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


class _Reach(Enum):
    """
    Where a `base_url` lies, and so which addresses its name may have.
    """

    PUBLIC = "public"
    PRIVATE = "private"
    LOOPBACK = "loopback"


class Gate:
    """
    One account's way out.
    """

    def __init__(
        self,
        hosts: Sequence[str] = (),
        *,
        base_url: str | None = None,
        private_network: bool = False,
        fake_ip: bool = False,
        resolve: Resolve = system_resolve,
        own_ports: Callable[[], Collection[int]] = lambda: (),
    ) -> None:
        """
        Open the way to `hosts`: exact names, or `*.suffix` for every name below that suffix, over TLS at port 443.

        `base_url` opens exactly its own scheme, host and port; http, and addresses that are not public, only where it
        is this machine, or with `private_network` a private address. `fake_ip` accepts 198.18.0.0/15 as an answer for
        a public name (proxies that invent addresses). `own_ports` tells the relay's own ports, which are never reached.

        Raises:
            ConfigError: A host or the base URL is not of that kind.
        """
        self._exact, self._suffixes = _read_hosts(hosts)
        self._fake_ip = fake_ip
        self._resolve = resolve
        self._own_ports = own_ports
        self._base = None if base_url is None else _read_base(base_url)
        self._reach = _Reach.PUBLIC if self._base is None else _reach(self._base, private_network=private_network)

    def admit(self, url: str) -> Target:
        """
        Read the URL and check it against the list, without looking anything up.

        An `http://` address on a listed host is taken as its `https://` one.

        Raises:
            OutboundRefused: It is malformed or leads elsewhere.
        """
        read = _read(url)
        if self._base is not None and read.origin == self._base.origin:
            if self._reach is _Reach.LOOPBACK and read.port in self._own_ports():
                raise OutboundRefused(f"Port {read.port} is the relay's own.")
            return _as_direct(read) if self._reach is not _Reach.PUBLIC else read
        if not self._listed(read.host):
            raise OutboundRefused(
                f"The host {read.host} is not on the account's list, so nothing was sent there.",
                hint="If the provider really serves its results from there, add it to the account's allow_hosts.",
            )
        if read.port != _DEFAULT_PORTS[read.scheme]:
            raise OutboundRefused(f"Port {read.port} of {read.host} is not one the account may reach.")
        if (literal := _literal(read.host)) is not None and not is_public(literal):
            raise OutboundRefused(f"{read.host} is not a public address.")
        return Target(scheme="https", host=read.host, port=443, target=read.target)

    async def addresses(self, host: str, port: int) -> list[str]:
        """
        Look an admitted host up, once, and give the addresses to dial; every one has been checked.

        Raises:
            OutboundRefused: One of them is not of the kind that the host may have.
            TransportError: The name could not be looked up.
        """
        literal = _literal(host)
        if literal is not None:
            found: Sequence[str] = [str(literal)]
        else:
            try:
                found = await self._resolve(host, port)
            except (OSError, UnicodeError) as exc:
                raise TransportError(f"The name {host} could not be looked up.", maybe_sent=False) from exc
        if not found:
            raise TransportError(f"The name {host} has no address.", maybe_sent=False)
        return [self._checked(text, host, port) for text in found]

    def _checked(self, text: str, host: str, port: int) -> str:
        try:
            address = ip_address(text)
        except ValueError:
            address = None
        if address is None or not self._suits(address, host, port):
            hint = None
            if address is not None and address in FAKE:
                hint = "A proxy seems to answer DNS with invented addresses; if so, set fake_ip = true under [network]."
            raise OutboundRefused(f"The name {host} leads to {text}, where the account may not go.", hint=hint)
        return str(address)

    def _suits(self, address: IPv4Address | IPv6Address, host: str, port: int) -> bool:
        if self._base is not None and (host, port) == (self._base.host, self._base.port):
            if self._reach is _Reach.LOOPBACK:
                return is_loopback(address)
            if self._reach is _Reach.PRIVATE:
                # Plain http stays inside the private network even where its name is later pointed elsewhere.
                return is_private(address) or (self._base.scheme == "https" and is_public(address))
        return is_public(address) or (self._fake_ip and address in FAKE)

    def _listed(self, host: str) -> bool:
        return host in self._exact or any(host.endswith(suffix) for suffix in self._suffixes)


def _read(url: str) -> Target:
    # `isprintable` is false for every control, format (zero-width, bidi), line separator and lone surrogate.
    if len(url) > MAX_URL_CHARACTERS or not url.isprintable() or "\\" in url or url != url.strip():
        raise OutboundRefused("The address holds characters that no address should, or is too long.")
    match = _URL.fullmatch(url)
    if match is None:
        raise OutboundRefused("The address is not a plain https one.")
    scheme = match["scheme"].lower()
    if scheme not in _DEFAULT_PORTS:
        raise OutboundRefused("The address is not a plain https one.")
    return Target(
        scheme=scheme,
        host=_read_host(match["host"].lower()),
        port=_read_port(match["port"], scheme),
        target=_ENCODE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), match["path"] or "/"),
    )


def _read_host(host: str) -> str:
    if host.startswith("["):
        try:
            return str(IPv6Address(host[1:-1]))
        except ValueError:
            raise OutboundRefused("The address's host is no IPv6 address.") from None
    if len(host) > 253 or _NAME.fullmatch(host) is None:
        raise OutboundRefused("The address's host is not a plain name.")
    last = host.rpartition(".")[2]
    # A name whose last label is a number is an IPv4 address to some parsers, in many spellings; only one is taken.
    if last.isdigit() or re.fullmatch(r"0x[0-9a-f]*", last):
        try:
            return str(IPv4Address(host))
        except ValueError:
            raise OutboundRefused("The address's host is a number, but no plain IPv4 address.") from None
    return host


def _read_port(text: str | None, scheme: str) -> int:
    if text is None:
        return _DEFAULT_PORTS[scheme]
    if len(text) > 5 or text.startswith("0") or int(text) > 65_535:
        raise OutboundRefused("The address's port is not a plain number.")
    return int(text)


def _read_hosts(hosts: Sequence[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    exact: set[str] = set()
    suffixes: list[str] = []
    for host in hosts:
        name = host.lower().removeprefix("*.")
        try:
            name = _read_host(name)
        except OutboundRefused as exc:
            raise ConfigError(f"“{host}” is neither a host name nor *.suffix.") from exc
        if not host.startswith("*."):
            exact.add(name)
        elif "." in name and _literal(name) is None:
            suffixes.append(f".{name}")
        else:
            raise ConfigError(f"“{host}” is too wide: a suffix needs at least two labels.")
    return frozenset(exact), tuple(suffixes)


def _read_base(base_url: str) -> Target:
    try:
        return _read(base_url)
    except OutboundRefused as exc:
        raise ConfigError(f"The base_url cannot be used: {exc.message}") from exc


def _reach(base: Target, *, private_network: bool) -> _Reach:
    literal = _literal(base.host)
    if base.host == "localhost" or (literal is not None and is_loopback(literal)):
        return _Reach.LOOPBACK
    if private_network and (literal is None or is_private(literal)):
        return _Reach.PRIVATE
    if literal is not None and not is_public(literal):
        raise ConfigError(
            f"The base_url's address {base.host} is not a public one.",
            hint="For a server in your own network set private_network = true on the account.",
        )
    if base.scheme != "https":
        raise ConfigError(
            "The base_url is http, which would send the key in the clear.",
            hint="Use https. Plain http is for this machine, or with private_network = true for your own network.",
        )
    return _Reach.PUBLIC


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _as_direct(target: Target) -> Target:
    return Target(scheme=target.scheme, host=target.host, port=target.port, target=target.target, direct=True)

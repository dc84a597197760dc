"""
Bugs in who may come in, and in where calls may go.
"""

import hmac
import socket
from typing import Any

import vidrelay.client.dial as dialling
from controls.planting import around, bug
from vidrelay.daemon import logs, ports
from vidrelay.server import gate as server_gate
from vidrelay.server.gate import Gate as ServerGate
from vidrelay.server.login import Logins
from vidrelay.transport.dial import CountedDialer, VettedDialer
from vidrelay.transport.gate import Gate


@bug("tests/transport/test_gate.py")
def prefix_match_on_hosts() -> None:
    """A host is allowed if it begins like one on the list."""

    @around(Gate, "_listed")
    def _(original: Any, self: Gate, host: str) -> bool:
        return any(host.startswith(allowed) for allowed in self._exact) or original(self, host)


@bug("tests/transport/test_gate.py")
def suffix_match_without_its_dot() -> None:
    """A host is allowed if it ends like one on the list, whatever stands before."""

    @around(Gate, "_listed")
    def _(original: Any, self: Gate, host: str) -> bool:
        return any(host.endswith(suffix.lstrip(".")) for suffix in self._suffixes) or original(self, host)


@bug("tests/transport/test_http.py::test_the_checked_address_is_dialled_and_the_name_is_what_tls_and_host_say")
def address_checked_and_another_dialled() -> None:
    """The name is looked up to be checked, and looked up again to be dialled."""

    @around(VettedDialer, "connect_tcp")
    async def _(original: Any, self: VettedDialer, host: str, port: int, *rest: Any, **more: Any) -> Any:
        await self._gate.addresses(host, port)
        return await CountedDialer.connect_tcp(self, host, port, *rest, **more)


@bug("tests/server/test_gate.py")
def one_route_without_credential() -> None:
    """One harmless call is answered without a token."""

    @around(ServerGate, "_admits")
    def _(original: Any, self: ServerGate, scope: Any) -> bool:
        return (scope["method"] == "GET" and scope["raw_path"] == b"/stats") or original(self, scope)


@bug("tests/server/test_gate.py")
def host_is_not_looked_at() -> None:
    """The token is enough, whatever Host a page has been rebound to."""

    @around(ServerGate, "_admits")
    def _(original: Any, self: ServerGate, scope: Any) -> bool:
        own = next(iter(sorted(self._hosts)))
        headers = [(name, own if name == b"host" else value) for name, value in scope["headers"]]
        return bool(original(self, {**scope, "headers": headers}))


@bug("tests/server/test_gate.py::test_every_route_refuses_every_wrong_credential_alike")
def str_compare_of_tokens() -> None:
    """Tokens are compared as text, which an odd byte makes impossible."""

    class Hmac:
        """The library, but for the type."""

        def __getattr__(self, name: str) -> Any:
            return getattr(hmac, name)

        def compare_digest(self, one: bytes, other: bytes) -> bool:
            """Raise for what is no ASCII."""
            return hmac.compare_digest(one.decode(), other.decode())

    server_gate.hmac = Hmac()


@bug("tests/server/test_login.py::test_the_cookie_alone_has_no_effect")
def cookie_alone_for_effects() -> None:
    """A login's cookie is enough for every call, though another port's page sends it too."""

    @around(Logins, "admitted")
    def _(original: Any, self: Logins, cookies: bytes, **rest: Any) -> Any:
        return original(self, cookies, **(rest | {"effect": False}))


@bug("tests/test_daemon.py::test_no_credential_reaches_the_log")
def credentials_in_the_log() -> None:
    """A line is logged as it is."""

    @around(logs, "clean")
    def _(original: Any, text: str) -> str:
        return text


@bug("tests/test_client.py::test_a_stranger_on_the_port_gets_neither_token_nor_prompt")
def probe_carries_the_token() -> None:
    """The listener is asked to prove itself by a call that has the token on it."""

    @around(dialling, "_prove")
    async def _(original: Any, stream: Any, beacon: Any) -> None:
        class Telling:
            """The stream, with one more header on the first call."""

            def __getattr__(self, name: str) -> Any:
                return getattr(stream, name)

            async def write(self, data: bytes, timeout: float | None = None) -> None:
                told = f"\r\nX-Local-Token: {beacon.token}\r\n\r\n".encode()
                await stream.write(data.replace(b"\r\n\r\n", told, 1), timeout=timeout)

        await original(Telling(), beacon)


@bug("tests/test_daemon.py")
def listens_everywhere() -> None:
    """The relay listens on every address of the machine."""

    class Everywhere(ports.socket.socket):
        """A socket that is not particular."""

        def bind(self, address: Any) -> None:
            super().bind(("", address[1]))

    class Sockets:
        """The system's sockets, but for that."""

        socket = Everywhere

        def __getattr__(self, name: str) -> Any:
            return getattr(socket, name)

    ports.socket = Sockets()  # type: ignore[attr-defined]

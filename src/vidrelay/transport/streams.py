"""
Websockets, as far as a call that listens needs them: the opening, and the text messages that come.

What it speaks them with is slow to load, so it is loaded by those only who have a provider that may be listened to.
"""

from collections.abc import AsyncGenerator
from contextlib import suppress

import httpcore2
from wsproto.connection import Connection, ConnectionType
from wsproto.events import CloseConnection, Ping, TextMessage
from wsproto.utilities import generate_accept_token, generate_nonce

from vidrelay.core.errors import TransportError

READ_BYTES = 64 * 1024
FAREWELL_SECONDS = 1.0


class Opening:
    """
    One websocket's opening: what is asked, and whether the answer agrees.
    """

    def __init__(self) -> None:
        self._nonce = generate_nonce()

    def headers(self) -> list[tuple[bytes, bytes]]:
        """
        What asks a server to make a websocket of the connection.
        """
        return [
            (b"Connection", b"Upgrade"),
            (b"Upgrade", b"websocket"),
            (b"Sec-WebSocket-Version", b"13"),
            (b"Sec-WebSocket-Key", self._nonce),
        ]

    def check(self, response: httpcore2.Response) -> None:
        """
        Look whether who answers has understood that it is to be a websocket.

        Raises:
            TransportError: It has not.
        """
        told = {name.lower(): value for name, value in response.headers}
        agrees = told.get(b"sec-websocket-accept") == generate_accept_token(self._nonce)
        if not agrees or b"sec-websocket-extensions" in told or b"sec-websocket-protocol" in told:
            raise TransportError("The server did not open the websocket that was asked for.", maybe_sent=True)


async def text_messages(response: httpcore2.Response) -> AsyncGenerator[bytes]:
    """
    What an opened websocket says, piece by piece: each text message is a line. What is not text is left out.
    """
    stream: httpcore2.AsyncNetworkStream = response.extensions["network_stream"]
    connection = Connection(ConnectionType.CLIENT)
    try:
        while data := await stream.read(READ_BYTES):
            connection.receive_data(data)
            for event in connection.events():
                match event:
                    case TextMessage():
                        yield event.data.replace("\n", " ").encode() + b"\n" * event.message_finished
                    case Ping():
                        await stream.write(connection.send(event.response()), FAREWELL_SECONDS)
                    case CloseConnection():
                        return
    finally:
        with suppress(Exception):
            await stream.write(connection.send(CloseConnection(code=1000)), FAREWELL_SECONDS)

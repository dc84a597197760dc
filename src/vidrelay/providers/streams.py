"""
Reads what came of a stream: server-sent events, and messages of a line each. Nothing here raises because of what came.
"""

import re
from typing import Any

from vidrelay.core.messages import HttpReply
from vidrelay.providers.replies import read_object

_END_OF_EVENT = re.compile(rb"\r\n\r\n|\n\n|\r\r")


def last_event(body: bytes | bytearray) -> dict[str, Any] | None:
    """
    The data of the last server-sent event that came whole, as a JSON object; None where there is none.
    """
    for event in reversed(_END_OF_EVENT.split(bytes(body))[:-1]):
        lines = [line.removeprefix(b"data:").strip() for line in event.splitlines() if line.startswith(b"data:")]
        if lines:
            return read_object(HttpReply(status=200, body=b"\n".join(lines)))
    return None


class Lines:
    """
    The messages of a body that grows, each read once.
    """

    def __init__(self) -> None:
        self._read = 0

    def more(self, body: bytes | bytearray) -> list[dict[str, Any]]:
        """
        The JSON objects among the lines that have come whole since the last time.
        """
        end = body.rfind(b"\n") + 1
        if end <= self._read:
            return []
        lines, self._read = bytes(body[self._read : end]).splitlines(), end
        return [told for line in lines if (told := read_object(HttpReply(status=200, body=line))) is not None]

"""
Holds an adapter's conversation: sends what it yields, gives it the replies, returns what it concludes.
"""

from dataclasses import dataclass
from typing import TypeVar

from vidrelay.core.messages import HttpReply
from vidrelay.core.ports import Conversation, Transport

T = TypeVar("T")

CALL_SECONDS = 60.0
CREATE_SECONDS = 300.0


@dataclass(slots=True)
class Sending:
    """
    How far a conversation got: whether its paid request was handed to the transport.
    """

    create_begun: bool = False


async def converse(conversation: Conversation[T], transport: Transport, sending: Sending | None = None) -> T:
    """
    Run the conversation to its end.

    Raises:
        TransportError: One of its calls failed. If `sending.create_begun` is false then, or `maybe_sent` is, nothing
            was created.
    """
    try:
        request = next(conversation)
        while True:
            if request.creates and sending is not None:
                sending.create_begun = True
            timeout = CREATE_SECONDS if request.creates else CALL_SECONDS
            async with transport.send(request, timeout=timeout) as reply:
                whole = HttpReply(status=reply.status, headers=reply.headers, body=await reply.read())
            request = conversation.send(whole)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        conversation.close()

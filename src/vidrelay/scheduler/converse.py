"""
Holds an adapter's conversation: sends what it yields, gives it the replies, returns what it concludes.

No request leaves while the account rests, whatever the conversation waited for before it, and the account's status
requests leave one after another.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

from vidrelay.core.adapter import Conversation
from vidrelay.core.clock import Clock
from vidrelay.core.errors import TransportError
from vidrelay.core.messages import Blob, Form, HttpReply, HttpRequest, Json
from vidrelay.scheduler.account import Account

T = TypeVar("T")

CALL_SECONDS = 60.0
CREATE_SECONDS = 300.0


@dataclass(slots=True, kw_only=True)
class Sending:
    """
    How far a conversation got: whether its paid request was handed to the transport, and when the last that only asks
    was. One that only asks does not leave before `status_from`. Instants are monotonic seconds.
    """

    create_begun: bool = False
    asked_at: float = float("-inf")
    status_from: float = float("-inf")


class Caller:
    """
    Calls providers.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def converse(
        self,
        account: Account,
        conversation: Conversation[T],
        *,
        creates: bool = False,
        sending: Sending | None = None,
    ) -> T:
        """
        Run the conversation to its end.

        `creates`: a pause of creates holds it too. `sending` is told how far it got.

        Raises:
            TransportError: One of its calls failed, or may not go since the account rests. If `sending.create_begun` is
                false then, or `maybe_sent` is, nothing was created.
        """

        def may_go() -> bool:
            return account.held(creates=creates, monotonic=self._clock.monotonic()) <= 0

        sending = sending or Sending()
        try:
            request = next(conversation)
            while True:
                if is_status(request):
                    # Also where a turn was reserved: whatever was waited for since, another may just have left.
                    await self.wait_turn(account, since=sending.status_from)
                if not may_go():
                    raise TransportError("The account rests.", maybe_sent=False)
                if is_status(request):
                    sending.asked_at = self._clock.monotonic()
                    account.leaves(sending.asked_at)
                sending.create_begun = sending.create_begun or request.creates
                timeout = CREATE_SECONDS if request.creates or _is_large(request) else CALL_SECONDS
                timeout += 0.0 if request.held is None else request.held.seconds
                asked = replace(request, may_go=may_go)
                async with account.plan.transport.send(asked, timeout=timeout) as reply:
                    whole = HttpReply(status=reply.status, headers=reply.headers, body=await reply.read())
                request = conversation.send(whole)
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            conversation.close()

    async def wait_turn(self, account: Account, *, since: float) -> None:
        """
        Wait until a status request of the account may leave, not before `since`, though before those that have reserved
        a later turn.
        """
        while (wait := max(since, account.turn(now := self._clock.monotonic(), now)) - now) > 0:
            await self._clock.sleep(wait)


def _is_large(request: HttpRequest) -> bool:
    """
    Whether it may carry pictures.
    """
    return isinstance(request.body, Form | Json | Blob)


def is_status(request: HttpRequest) -> bool:
    """
    Whether it only asks: a poll, a list, a question for limits.
    """
    return request.method == "GET" or request.asks

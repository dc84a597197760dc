"""
What fal says of a request (that it is taken, its stream of statuses, its result, what became of a wish to cancel it)
and of the account's balance.
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.adapter import CancelResult, CheckOutcome, NotThere, PollOutcome, Refused, Trouble
from vidrelay.core.lifecycle import Accepted, Cancelled, CancelTooLate, Failed, Ready, StillRunning
from vidrelay.core.messages import Held, HttpReply
from vidrelay.core.task import CancelOutcome, RemoteState, RemoteTimes
from vidrelay.providers.fal import words
from vidrelay.providers.fal.parameters import app_of, told_app
from vidrelay.providers.replies import number_of, object_of, read_object, text_of
from vidrelay.providers.streams import last_event
from vidrelay.providers.verdicts import CURRENCY, failed, left_of, of_poll, ready

FOLLOWED_SECONDS = 60.0


def accepted(data: Mapping[str, Any], request_id: str, endpoint: str) -> Accepted:
    """
    A create that fal took: its id has its app before it where that is not the one that the endpoint is of.
    """
    state = words.STATES.read(text_of(data, "status")).remote_state
    app = told_app(text_of(data, "response_url"), request_id) or app_of(endpoint)
    remote_id = request_id if app == app_of(endpoint) else f"{app}/{request_id}"
    return Accepted(remote_id=remote_id, remote_state=state or RemoteState.WAITING)


def until_news(known: StillRunning | None) -> Held:
    """
    How long a stream of statuses is listened to: until one differs from what was known.
    """

    def enough(body: bytearray) -> bool:
        told = last_event(body)
        return told is not None and words.standing(told) != known

    return Held(seconds=FOLLOWED_SECONDS, enough=enough)


def result(reply: HttpReply, seconds: float | None, *, key: str | None) -> PollOutcome:
    """
    What the answer for a result means; `seconds` is how long the model worked, where that is told.
    """
    if not 200 <= reply.status < 300:
        error = words.error(reply, key=key)
        if words.underway(reply, error):
            return Trouble(detail=error.detail)
        meaning = words.of_model(reply, error)
        return of_poll(error) if meaning is None else failed(meaning, error.detail)
    return ready(*words.addresses(read_object(reply) or {}), times=RemoteTimes(execute_seconds=seconds))


def stopped(seen: PollOutcome) -> CancelResult:
    """
    What became of the wish to cancel, by how the request stands after it.
    """
    match seen:
        case NotThere():
            return Cancelled(outcome=CancelOutcome.STOPPED)
        case Failed(problem=problem) if problem.code == "remote_cancelled":
            return Cancelled(outcome=CancelOutcome.STOPPED)
        case StillRunning(remote_state=RemoteState.WORKING):
            return Cancelled(outcome=CancelOutcome.UNSUPPORTED)
        case Failed() | Ready():
            return CancelTooLate()
        case Refused() | Trouble():
            return seen
        case _:
            return Trouble(detail="the provider has not taken it out of its queue yet")


def left(data: Mapping[str, Any]) -> CheckOutcome:
    """
    What the account may still spend.
    """
    balance = object_of(data, "credits")
    currency = text_of(balance, "currency") or ""
    unit = currency if CURRENCY.fullmatch(currency) else "credits"
    return left_of(number_of(balance, "current_balance"), unit)

"""
What this shape's replies mean: errors, endings, times, and whether a listed job is a lost one.
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.adapter import Refused, Scope
from vidrelay.core.lifecycle import Failed
from vidrelay.core.messages import HttpReply
from vidrelay.core.task import BlockReason, RemoteTimes, Task
from vidrelay.providers.listing import Between, same
from vidrelay.providers.openai import words
from vidrelay.providers.replies import instant_of, number_of, text_of, told, wait_of
from vidrelay.providers.verdicts import Meaning, failed


def refusal(
    reply: HttpReply, data: dict[str, Any] | None, *, key: str | None, creating: bool = False
) -> Refused | None:
    """
    What the account must pause for: a bad key, too many requests; and of a create, no money or too many running.
    """
    said = reason(data, key=key)
    if creating and said is None and reply.status != 429:
        return None  # a proxy's page, which says nothing of what stands behind it
    why = said or f"the provider answered {reply.status}"
    wait = wait_of(reply)
    if creating and reply.status == 403 and words.POLICY.search(why):
        return None
    if reply.status in (401, 403):
        return Refused(scope=Scope.CALLS, reason=BlockReason.AUTH, detail=why, retry_after=wait)
    if creating and (reply.status == 402 or (reply.status == 429 and words.NO_BALANCE.search(why))):
        return Refused(scope=Scope.CREATES, reason=BlockReason.BALANCE, detail=why, retry_after=wait)
    if creating and reply.status == 429 and words.TOO_MANY_RUNNING.search(why):
        return Refused(scope=Scope.CREATES, reason=BlockReason.WINDOW, detail=why, retry_after=wait)
    if reply.status == 429:
        return Refused(scope=Scope.CALLS, reason=BlockReason.RATE, detail=why, retry_after=wait)
    return None


def reason(data: dict[str, Any] | None, *, key: str | None) -> str | None:
    """
    A reply's error in one line, or None where it holds none: `{"error": …}`, `{"detail": …}` or `{"message": …}`.
    """
    if data is None:
        return None
    error = data.get("error") or data.get("detail") or data.get("message")
    if isinstance(error, Mapping):
        said = [error.get(name) for name in ("code", "message", "type")]
        error = ": ".join(str(part) for part in said[:2] if isinstance(part, str | int) and part) or said[2]
    elif isinstance(error, list):  # the local servers' list of wrong fields
        fields = [one for one in error if isinstance(one, Mapping)]
        error = "; ".join(f"{_where(one.get('loc'))}{one.get('msg', '')}" for one in fields[:5])
    return told(error, secret=key) if isinstance(error, str) and error else None


def rejected(status: int, why: str) -> Failed:
    """
    What becomes of a create that was refused for good.
    """
    if words.POLICY.search(why):
        return failed(Meaning.MODERATED, why)
    return failed(Meaning.REJECTED, f"{why} (status {status})")


def ended(job: dict[str, Any], *, key: str | None, remote_id: str | None = None) -> Failed:
    """
    Why a job that was made ended without a result.
    """
    status = text_of(job, "status")
    why = reason({"error": job.get("error")}, key=key) or f"it says {status} and no more"
    meaning = words.STATES.read(status).meaning
    if meaning is Meaning.AGAIN and words.POLICY.search(why):
        meaning = Meaning.MODERATED
    return failed(meaning, why, remote_id=remote_id)


def is_alike(job: Mapping[str, Any], task: Task, when: Between) -> bool:
    """
    Whether a listed job says what the lost create said, at the time it was sent. What was left to the server to choose
    is not compared.
    """
    if not when.holds(instant_of(job, "created_at")):
        return False
    if job.get("prompt") != task.parameters.get("prompt"):
        return False
    sent = {name: task.parameters.get(name) for name in ("model", "seconds", "size")}
    return all(same(job.get(name), value) for name, value in sent.items())


def times(job: Mapping[str, Any]) -> RemoteTimes:
    """
    What a job tells of the provider's clock.
    """
    worked = number_of(job, "inference_time_s")
    return RemoteTimes(
        created_at=instant_of(job, "created_at"),
        completed_at=instant_of(job, "completed_at"),
        execute_seconds=worked if worked is not None and worked >= 0 else None,
    )


def _where(loc: Any) -> str:
    return ".".join(str(part) for part in loc) + ": " if isinstance(loc, list) and loc else ""

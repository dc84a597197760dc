"""
What the queue and the history of a ComfyUI server say of a job.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from vidrelay.core.adapter import CancelResult, PollOutcome, Refused, Trouble
from vidrelay.core.lifecycle import Cancelled, CancelTooLate, Failed, Ready, StillRunning
from vidrelay.core.task import CancelOutcome, RemoteFile, RemoteState, RemoteTimes
from vidrelay.providers.comfyui import words
from vidrelay.providers.replies import number_of, text_of, told
from vidrelay.providers.verdicts import Meaning, Standing, failed

_FILMS = (".mp4", ".webm", ".mkv", ".mov", ".m4v", ".avi")
_MOVING = (".gif", ".webp")
_LATEST = 253402300799


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """
    One job in the queue; `position` is how many wait before it, None for one at work.
    """

    id: str
    data: Mapping[str, Any]
    position: int | None = None


def queue(data: Mapping[str, Any] | None) -> list[Queued] | None:
    """
    Every job of `GET /queue`; None where a part of it cannot be read, since then nothing may be taken for absent.
    """
    if data is None:
        return None
    running, pending = (_items(data.get(name)) for name in ("queue_running", "queue_pending"))
    if running is None or pending is None:
        return None
    # It is a heap: what its list shows first is next, and of the rest nothing is said by its order.
    line = sorted(pending, key=lambda item: item[0])
    return [
        *(Queued(id=item[1], data=_data(item)) for item in running),
        *(Queued(id=item[1], data=_data(item), position=number) for number, item in enumerate(line)),
    ]


def _items(listed: Any) -> list[Any] | None:
    if not isinstance(listed, list):
        return None
    for item in listed:
        whole = isinstance(item, list) and len(item) >= 2 and isinstance(item[1], str)
        if not whole or isinstance(item[0], bool) or not isinstance(item[0], int | float):
            return None
    return listed


def _data(item: list[Any]) -> Mapping[str, Any]:
    return item[3] if len(item) > 3 and isinstance(item[3], dict) else {}


def extra_data(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """
    What was sent along with the job of a history entry.
    """
    prompt = entry.get("prompt")
    return _data(prompt) if isinstance(prompt, list) else {}


def messages(entry: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """
    What the server told of a job of the history, by the event's name; the last of each name.
    """
    status = entry.get("status")
    listed = status.get("messages") if isinstance(status, dict) else None
    return {
        one[0]: one[1]
        for one in (listed if isinstance(listed, list) else [])
        if isinstance(one, list) and len(one) == 2 and isinstance(one[0], str) and isinstance(one[1], dict)
    }


def standing(entry: Mapping[str, Any]) -> Standing:
    """
    How a job of the history ended.
    """
    status = entry.get("status")
    if not isinstance(status, dict):
        return Standing.DONE if entry.get("outputs") else Standing.UNKNOWN
    word = words.RESULTS.read(text_of(status, "status_str"))
    interrupted = word is Standing.FAILED and "execution_interrupted" in messages(entry)
    return Standing.CANCELLED if interrupted else word


def reason(entry: Mapping[str, Any], *, key: str | None) -> str:
    """
    Why a job of the history failed.
    """
    told_of = messages(entry)
    data = told_of.get("execution_error") or told_of.get("execution_interrupted") or {}
    node, what = text_of(data, "node_type"), text_of(data, "exception_message")
    why = what or ("it was interrupted" if "execution_interrupted" in told_of else "it says error and no more")
    return told(f"{node}: {why}" if node else why, secret=key)


def times(entry: Mapping[str, Any]) -> RemoteTimes:
    """
    When a job of the history was made, begun and ended, as far as it is told.
    """
    told_of = messages(entry)
    ends = ("execution_success", "execution_error", "execution_interrupted")
    return RemoteTimes(
        created_at=instant(extra_data(entry), "create_time"),
        started_at=instant(told_of.get("execution_start", {}), "timestamp"),
        completed_at=next((instant(told_of[name], "timestamp") for name in ends if name in told_of), None),
    )


def instant(data: Mapping[str, Any], name: str) -> datetime | None:
    """
    The instant that a number of milliseconds means, or None.
    """
    number = number_of(data, name)
    seconds = None if number is None else number / 1000
    return datetime.fromtimestamp(seconds, UTC) if seconds is not None and 0 < seconds <= _LATEST else None


def files(entry: Mapping[str, Any]) -> list[dict[str, str]]:
    """
    Every file that a job of the history made: `filename`, `subfolder`, `type`; films first, previews only where there
    is nothing else. Which name a node lists its files under differs, so each list is looked through.
    """
    outputs = entry.get("outputs")
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for node in outputs.values() if isinstance(outputs, dict) else ():
        for listed in node.values() if isinstance(node, dict) else ():
            for item in listed if isinstance(listed, list) else ():
                if not isinstance(item, dict):
                    continue
                name, kind = text_of(item, "filename"), text_of(item, "type")
                # What lies among the inputs was put in, not made.
                if name and kind in ("output", "temp"):
                    file = {"filename": name, "subfolder": text_of(item, "subfolder") or "", "type": kind}
                    found[tuple(file.values())] = file
    kept = [file for file in found.values() if file["type"] == "output"]
    return sorted(kept or found.values(), key=lambda file: _rank(file["filename"].lower()))


def _rank(name: str) -> int:
    return 0 if name.endswith(_FILMS) else 1 if name.endswith(_MOVING) else 2


def waiting(queued: Queued) -> StillRunning:
    """
    What is known of a job that is in the queue.
    """
    state = RemoteState.WORKING if queued.position is None else RemoteState.WAITING
    created_at = instant(queued.data, "create_time")
    return StillRunning(remote_state=state, queue_position=queued.position, times=RemoteTimes(created_at=created_at))


def outcome(entry: Any, *, base: str, key: str | None) -> PollOutcome:
    """
    What became of a job of the history.
    """
    if not isinstance(entry, dict):
        return Trouble(detail="the history's entry cannot be read")
    match standing(entry):
        case Standing.DONE:
            made = files(entry)
            if not made:
                return failed(Meaning.REJECTED, "it is done, and its graph has saved no file")
            outputs = tuple(RemoteFile(url=f"{base}/view?{urlencode(file)}", needs_key=True) for file in made)
            return Ready(outputs=outputs, times=times(entry))
        case Standing.FAILED | Standing.CANCELLED as ended:
            return failed(ended.meaning, reason(entry, key=key))
        case _:
            return StillRunning()


def stopped(seen: PollOutcome) -> CancelResult:
    """
    What becomes of the wish to cancel where the job is not in the queue any more.
    """
    match seen:
        case Failed() if seen.problem.code == "remote_cancelled":
            return Cancelled(outcome=CancelOutcome.STOPPED)
        case Ready() | Failed():
            return CancelTooLate()
        case Refused() | Trouble():
            return seen
        case _:
            return Trouble(detail="the server does not know the job")


def any_before(entries: Iterable[Mapping[str, Any]], instant_: datetime) -> bool:
    """
    Whether one of these jobs of the history was made, begun or ended before then: the server runs since before then.
    """
    known = [times(entry) for entry in entries]
    told_of = [at for one in known for at in (one.created_at, one.started_at, one.completed_at)]
    return any(at is not None and at < instant_ for at in told_of)

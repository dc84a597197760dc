"""
DashScope's words, said once.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

from vidrelay.core.messages import HttpReply
from vidrelay.core.task import RemoteTimes
from vidrelay.providers.facts import Facts
from vidrelay.providers.replies import answered, number_of, object_of, read_object, rows_of, text_of, time_of
from vidrelay.providers.verdicts import Codes, Meaning, Said, Standing, StatusWords, said

FACTS = Facts(
    title="DashScope (Wan 通义万相)",
    takes="text, first frame, first and last frame, up to 10 references, audio under extra; which of them, by model",
    pictures="uploaded once and used again for 48 hours, or https address; 10 MB at most",
    limits="per model, told in the console only; above them a create is refused, or waits there",
    lost="found in the list by model and time once the task shows its prompt; with pictures or a seed a person chooses",
    cancel="until it is worked on",
    results="24 hours, and so the task itself",
    verified="SDK dashscope 2.0.2, both surfaces, run against the pretend provider, 30 November 2026",
)

HOST = "https://dashscope.aliyuncs.com/api/v1"
HOSTS = (
    "dashscope.aliyuncs.com",
    "dashscope-intl.aliyuncs.com",
    "dashscope-us.aliyuncs.com",
    "cn-hongkong.dashscope.aliyuncs.com",
    "*.maas.aliyuncs.com",
    "dashscope-result-bj.oss-cn-beijing.aliyuncs.com",
    "dashscope-result-hz.oss-cn-hangzhou.aliyuncs.com",
    "dashscope-result-sh.oss-cn-shanghai.aliyuncs.com",
    "dashscope-result-wlcb.oss-cn-wulanchabu.aliyuncs.com",
    "dashscope-result-wlcb-acdr-1.oss-cn-wulanchabu-acdr-1.aliyuncs.com",
    # Uploads go to a bucket that the provider names at each, in its own region; Singapore's and Virginia's results too.
    "*.oss-cn-beijing.aliyuncs.com",
    "*.oss-ap-southeast-1.aliyuncs.com",
    "*.oss-us-east-1.aliyuncs.com",
)
CHINA = timezone(timedelta(hours=8))
"""The zone of times that name none."""

GONE = "UNKNOWN"
"""The status of a task that does not exist, is older than a day, or belongs to another account."""
STATES = StatusWords(
    "dashscope",
    {
        "PENDING": Standing.WAITING,
        "SUSPENDED": Standing.WAITING,
        "RUNNING": Standing.WORKING,
        "SUCCEEDED": Standing.DONE,
        "FAILED": Standing.FAILED,
        "CANCELED": Standing.CANCELLED,
    },
)

CODES: Codes = {
    "InvalidApiKey": Meaning.AUTH,
    **dict.fromkeys(("InvalidParameter*", "UnsupportedOperation*"), Meaning.REJECTED),
    # Of one model or one kind of call, which the account may not make: the key is good for all the others.
    **dict.fromkeys(("AccessDenied*", "Model.AccessDenied*"), Meaning.REJECTED),
    **dict.fromkeys(("Model.NotExist*", "ModelNotFound*"), Meaning.REJECTED),
    "DataInspectionFailed*": Meaning.MODERATED,
    "Arrearage*": Meaning.BALANCE,
    **dict.fromkeys(("Throttling", "Throttling.*"), Meaning.RATE),
    **dict.fromkeys(("InternalError*", "ServiceUnavailable*", "GatewayTimeout*"), Meaning.AGAIN),
}


def error(reply: HttpReply, *, key: str | None) -> Said:
    """
    Read `{"code", "message", "request_id"}`.
    """
    data = read_object(reply) or {}
    return said(reply, CODES, code=text_of(data, "code") or None, detail=text_of(data, "message"), secret=key)


def output_of(reply: HttpReply) -> dict[str, Any] | None:
    """
    What the reply says of a task; None where it is an error, which may come with HTTP 200.
    """
    data = answered(reply) or {}
    output = data.get("output")
    if not isinstance(output, dict):
        return None
    return None if text_of(data, "code") and "task_status" not in output else output


def rows_in(reply: HttpReply) -> list[dict[str, Any]] | None:
    """
    The tasks of a list; None where the reply is none. The SDK reads one that is wrapped in `output` as well.
    """
    data = answered(reply) or {}
    rows = rows_of(data, "data", "tasks")
    return rows_of(object_of(data, "output"), "tasks") if rows is None else rows


def total_of(reply: HttpReply) -> float:
    """
    How many tasks the whole list has, as far as it tells.
    """
    data = answered(reply) or {}
    return number_of(data, "total") or number_of(object_of(data, "output"), "total") or 0


def status_of(row: Mapping[str, Any]) -> str | None:
    """
    The status word of a listed task, which documents and answers name differently.
    """
    return text_of(row, "task_status") or text_of(row, "status")


def times(data: Mapping[str, Any]) -> RemoteTimes:
    """
    The three instants that split a task's time into its wait and its work.
    """
    return RemoteTimes(
        created_at=when(data, "submit_time") or when(data, "gmt_create"),
        started_at=when(data, "scheduled_time"),
        completed_at=when(data, "end_time"),
    )


def readings(data: Mapping[str, Any]) -> list[datetime]:
    """
    The instants at which a task may have been made: that its time, which names no zone, is China's is not documented.
    """
    told = (when(data, name, zone=zone) for zone in (CHINA, UTC) for name in ("submit_time", "gmt_create"))
    return [instant for instant in told if instant is not None]


def when(data: Mapping[str, Any], name: str, *, zone: tzinfo = CHINA) -> datetime | None:
    """
    The instant under that name: `2026-11-01 10:00:00.100` in that zone's time, or Unix milliseconds.
    """
    milliseconds = number_of(data, name)
    if milliseconds is None:
        return time_of(data, name, zone=zone)
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if 0 < milliseconds < 1e14 else None


def compact(instant: datetime) -> str:
    """
    An instant as the list's filter wants it: `YYYYMMDDhhmmss` in China's time.
    """
    return instant.astimezone(CHINA).strftime("%Y%m%d%H%M%S")

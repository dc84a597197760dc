"""
Jimeng's words, said once.
"""

from typing import Any

from vidrelay.core.messages import HttpReply
from vidrelay.providers.facts import Facts
from vidrelay.providers.replies import identity, object_of, read_object, text_of
from vidrelay.providers.verdicts import Codes, Meaning, Said, Standing, StatusWords, said

FACTS = Facts(
    title="Jimeng (即梦)",
    takes="text, first frame, first and last frame",
    pictures="https address, or bare base64 in the body; JPEG or PNG of 4.7 MB and 4096 pixels a side at most",
    limits="not told (1, or 2 of a paid product); a task too many is refused (429, code 50430)",
    lost="cannot be found: a person decides",
    cancel="asked for; whether a video's work is stopped is not documented",
    results="1 hour, told anew for 12 hours",
    verified="SDK volcengine 1.0.229 run against the pretend provider, 30 November 2026",
)

HOST = "https://visual.volcengineapi.com"
HOSTS = ("visual.volcengineapi.com", "*.vlabvod.com")
VERSION, CANCEL_VERSION = "2022-08-31", "2024-06-06"
SUBMIT, RESULT, CANCEL = "CVSync2AsyncSubmitTask", "CVSync2AsyncGetResult", "CVCancelTask"

TEXT = {None: "jimeng_ti2v_v30_pro", "720p": "jimeng_t2v_v30", "1080p": "jimeng_ti2v_v30_pro"}
"""Which `req_key` makes a clip of text, by resolution; then those for a first frame, and for both frames."""
FIRST_FRAME = {None: "jimeng_ti2v_v30_pro", "720p": "jimeng_i2v_first_v30", "1080p": "jimeng_ti2v_v30_pro"}
BOTH_FRAMES = {
    None: "jimeng_i2v_first_tail_v30",
    "720p": "jimeng_i2v_first_tail_v30",
    "1080p": "jimeng_i2v_first_tail_v30_1080",
}
REQ_KEYS = {
    "jimeng_ti2v_v30_pro": (0, 1),
    **dict.fromkeys(("jimeng_t2v_v30", "jimeng_t2v_v30_1080p", "jimeng_vgfm_t2v_l20"), (0, 0)),
    **dict.fromkeys(("jimeng_i2v_first_v30", "jimeng_i2v_first_v30_1080", "jimeng_i2v_recamera_v30"), (1, 1)),
    **dict.fromkeys(("jimeng_i2v_first_tail_v30", "jimeng_i2v_first_tail_v30_1080"), (2, 2)),
    "jimeng_vgfm_i2v_l20": (1, 1),
}
"""The keys that are known, by the least and the most pictures that each takes."""
DURATIONS, RATE = (5, 10), 24
"""A clip has one frame more than its seconds hold at that rate: 121 and 241."""
RATIOS = ("16:9", "4:3", "1:1", "3:4", "9:16", "21:9")
PICTURE_BYTES = 4_700_000
MAX_EDGE, MIN_EDGE, MAX_RATIO = 4096, 320, 3.0

GOOD = "10000"
NOT_FOUND, EXPIRED = "not_found", "expired"
STATES = StatusWords(
    "jimeng",
    {
        "in_queue": Standing.WAITING,
        "generating": Standing.WORKING,
        "processing": Standing.WORKING,
        "done": Standing.DONE,
        EXPIRED: Standing.EXPIRED,
    },
)

CONTENT = (
    *("50411", "50412", "50413", "50512", "50518"),
    # Marked as worth another try by the provider, which would be another clip, and another payment.
    *("50511", "50516", "50517", "50519"),
    *("50520", "50521", "50522"),
)
CODES: Codes = {
    **dict.fromkeys(CONTENT, Meaning.MODERATED),
    "50429": Meaning.RATE,
    "50430": Meaning.WINDOW,
    **dict.fromkeys(("50500", "50501"), Meaning.AGAIN),
    # What stands before the service: a clock that is wrong here has the same status as a wrong request there.
    **dict.fromkeys(("InvalidTimestamp", "InvalidAuthorization", "InvalidCredential"), Meaning.AUTH),
    "MissingRequestInfo": Meaning.AUTH,
    # Its 404 is about the way to the service, and says nothing of a task.
    **dict.fromkeys(("ServiceNotFound", "InvalidActionOrVersion"), Meaning.REJECTED),
}


def is_good(reply: HttpReply) -> bool:
    """
    Whether a call went through: its status alone does not say so, its code must be 10000.
    """
    return 200 <= reply.status < 300 and identity(read_object(reply) or {}, "code") == GOOD


def taken(reply: HttpReply) -> dict[str, Any] | None:
    """
    What a call that went through tells; None where it did not, or tells nothing.
    """
    data = (read_object(reply) or {}).get("data")
    return data if is_good(reply) and isinstance(data, dict) else None


def code_of(envelope: dict[str, Any]) -> str | None:
    """
    The error's code, or None.
    """
    code = identity(envelope, "code")
    return None if code == GOOD else code


def error(reply: HttpReply, *, secret: str | None) -> Said:
    """
    Read `{"code", "message"}`, or what stands before the service itself: `{"ResponseMetadata": {"Error": {...}}}`.
    """
    envelope = read_object(reply) or {}
    code, message = code_of(envelope), text_of(envelope, "message")
    inner = object_of(object_of(envelope, "ResponseMetadata"), "Error")
    if inner:
        code, message = text_of(inner, "Code"), text_of(inner, "Message")
    return said(reply, CODES, code=code, detail=message, secret=secret)

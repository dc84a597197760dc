"""
Vidu's words, said once.
"""

from vidrelay.core.messages import HttpReply
from vidrelay.providers.facts import Facts
from vidrelay.providers.replies import read_object, text_of
from vidrelay.providers.verdicts import Codes, Meaning, Said, Standing, StatusWords, said

FACTS = Facts(
    title="Vidu (生数)",
    takes="text, first frame, first and last frame, up to 7 references",
    pictures="https address, or data URI in the body; PNG, JPEG, WebP of 128 pixels a side; 14 MB in all",
    limits="asked: GET /credits; more tasks than that are taken and wait there",
    lost="found in the list by its time and words, and told by the payload that it shows when asked for",
    cancel="until it is scheduled",
    results="24 hours",
    verified="document, 30 November 2026; no official SDK",
)

HOST = "https://api.vidu.com/ent/v2"
HOSTS = (
    "api.vidu.com",
    "api.vidu.cn",
    "prod-ss-vidu.s3.cn-northwest-1.amazonaws.com.cn",
    "prod-ss-vidu.s3.oss-cn-beijing.aliyuncs.com",
)
TEXT, IMAGE, FRAMES, REFERENCES = "text2video", "img2video", "start-end2video", "reference2video"
KINDS = (TEXT, IMAGE, FRAMES, REFERENCES)

DURATIONS = {"viduq3": (1, 16), "viduq2": (1, 10), "viduq1": (5, 5)}
"""The seconds that a model's clips may have, by the beginning of its name."""
MODELS = (*DURATIONS, "vidu2.")
"""With these begin the names of the models that are known."""
DEFAULT_MODEL = "viduq3-turbo"
RATIOS = ("16:9", "9:16", "3:4", "4:3", "1:1")
RESOLUTIONS = ("540p", "720p", "1080p")
ANY_DURATION = (1, 3600)
MAX_PROMPT, MAX_PROMPT_CHINA = 5000, 2000
MAX_REFERENCES = 7
PICTURE_BYTES = 14_000_000
"""All pictures of a request together: a body may be 20 MB, and base64 makes four bytes of three."""
MIN_EDGE, MAX_RATIO = 128, 3.99

STATES = StatusWords(
    "vidu",
    {
        "created": Standing.WAITING,
        "queueing": Standing.WAITING,
        "processing": Standing.WORKING,
        "success": Standing.DONE,
        "failed": Standing.FAILED,
    },
)

NOT_FETCHED = "ImageDownloadFailure"
CODES: Codes = {
    **dict.fromkeys(
        (
            *("BadRequest", "FieldLacking", "FieldUnwanted", "FieldInvalid", "FieldItemCountOutOfRange"),
            *("PageSizeOutOfRange", "ImageFormatInvalid", "ModelUnavailable", "Conflict", "Canceled"),
            NOT_FETCHED,
        ),
        Meaning.REJECTED,
    ),
    **dict.fromkeys(("TaskPromptPolicyViolation", "AuditSubmitIllegal", "CreationPolicyViolation"), Meaning.MODERATED),
    "CreditInsufficient": Meaning.BALANCE,
    "UserCancelled": Meaning.CANCELLED,
    **dict.fromkeys(("Unauthorized", "Forbidden"), Meaning.AUTH),
    **dict.fromkeys(("TaskNotFound", "CreationNotFound", "NotFound"), Meaning.MISSING),
    **dict.fromkeys(("OperationInProcess", "TooManyRequests", "SystemThrottling"), Meaning.RATE),
    "QuotaExceeded": Meaning.WINDOW,
    "InternalServiceFailure": Meaning.AGAIN,
}


def error(reply: HttpReply, *, key: str | None) -> Said:
    """
    Read `{"code", "reason", "message", "metadata"}`.
    """
    data = read_object(reply) or {}
    return said(reply, CODES, code=text_of(data, "reason"), detail=text_of(data, "message"), secret=key)


def is_unfetched(reply: HttpReply) -> bool:
    """
    Whether a create was refused since a picture could not be fetched from its address, which may work another time.
    """
    return text_of(read_object(reply) or {}, "reason") == NOT_FETCHED

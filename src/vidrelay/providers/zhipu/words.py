"""
Zhipu's words, said once.
"""

from collections.abc import Mapping
from typing import Any

from vidrelay.core.messages import HttpReply
from vidrelay.providers.facts import Facts
from vidrelay.providers.replies import identity, object_of, read_object, text_of
from vidrelay.providers.verdicts import Codes, Meaning, Said, Standing, StatusWords, said

FACTS = Facts(
    title="Zhipu (智谱) and Z.ai",
    takes="text, first frame, first and last frame; Vidu models too; sound under extra",
    pictures="https address, or data URI in the body; PNG, JPEG",
    limits="per model and level, told in the console only; a create above them is refused",
    lost="not found: its request_id can only be sent again, which would tell that it exists and not under which id",
    cancel="never",
    results="not documented: fetched at once",
    verified="SDKs zai-sdk 0.2.3 and zhipuai 2.1.5 run against the pretend provider, 30 November 2026",
)

BASES = {"zhipu": "https://open.bigmodel.cn/api/paas/v4", "zai": "https://api.z.ai/api/paas/v4"}
HOSTS = ("*.bigmodel.cn", "*.chatglm.cn", "api.z.ai", "*.z.ai")

STATES = StatusWords(
    "zhipu",
    {
        # One word for waiting and for work: which of them it is, is not told.
        "PROCESSING": Standing.UNKNOWN,
        "SUCCESS": Standing.DONE,
        "FAIL": Standing.FAILED,
    },
)

EXISTS = "1231"
"""A job of this request_id exists: a create was carried out before, under an id that is not told."""
WRONG = frozenset({"1210", "1211", "1212", "1213", "1214", "1215"})
"""Wrong parameters; of a call whose only one is an id: no such task."""
CODES: Codes = {
    **dict.fromkeys(("1000", "1001", "1002", "1003", "1004", "1005"), Meaning.AUTH),
    **dict.fromkeys(("1110", "1111", "1112", "1121"), Meaning.AUTH),
    **dict.fromkeys(("1113", "1304", "1308", "1310"), Meaning.BALANCE),
    **dict.fromkeys((*WRONG, "1220", "1221", "1222", "1261"), Meaning.REJECTED),
    **dict.fromkeys(("1200", "1230", EXISTS, "1234"), Meaning.AGAIN),
    **dict.fromkeys(("1300", "1301"), Meaning.MODERATED),
    "1302": Meaning.WINDOW,
    **dict.fromkeys(("1303", "1305", "1312"), Meaning.RATE),
}


def code_of(data: Mapping[str, Any] | None) -> str | None:
    """
    The code in `{"error": {"code", "message"}}`, a text of digits; None where there is none.
    """
    return identity(object_of(data or {}, "error"), "code")


def error(reply: HttpReply, *, key: str | None) -> Said:
    """
    Read `{"error": {"code", "message"}}`.
    """
    data = read_object(reply)
    message = text_of(object_of(data or {}, "error"), "message")
    return said(reply, CODES, code=code_of(data), detail=message, secret=key)

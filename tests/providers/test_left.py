"""
What providers tell of what is left to spend is read into a number and what it counts, or nothing is claimed.
"""

from typing import Any

import pytest

from vidrelay.core.adapter import Adapter, Checked, Quota
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.registry import make_adapter
from vidrelay.testing.clock import FakeClock
from vidrelay.testing.conversing import converse, reply

NO_LIMIT = {"data": {"label": "sk-or-v1-abc", "limit": None, "limit_remaining": None, "usage": 7.5}}


def an_adapter(provider: str) -> Adapter:
    """
    The adapter of an account there.
    """
    return make_adapter(provider, AdapterSettings(now=FakeClock().now, key="access:secret-that-is-long-enough-for-it"))


def pack(left: int, status: str = "online") -> dict[str, Any]:
    """
    One of Kling's packs.
    """
    return {"resource_pack_name": "Video", "remaining_quantity": left, "status": status}


def packs(*told: dict[str, Any]) -> dict[str, Any]:
    """
    Kling's answer that tells of them.
    """
    return {"code": 0, "message": "SUCCEED", "data": {"code": 0, "resource_pack_subscribe_infos": list(told)}}


@pytest.mark.parametrize(
    ("provider", "answers", "left", "unit", "detail"),
    [
        ("runway", [{"creditBalance": 1000}], 1000, "credits", "1000 credits left"),
        ("vidu", [{"remains": [{"credit_remain": 5}, {"credit_remain": 2.5}]}], 7.5, "credits", "7.5 credits left"),
        ("luma", [{"credit_balance": 1234}], 12.34, "USD", "12.34 USD left"),
        ("fal", [{"credits": {"current_balance": 24.5, "currency": "USD"}}], 24.5, "USD", "24.50 USD left"),
        ("fal", [{"credits": {"current_balance": 24.5, "currency": "\x1b[2J"}}], 24.5, "credits", "24.5 credits left"),
        ("kling", [packs(pack(900), pack(10), pack(7, "expired"))], 910, "units", "910 units left, as of 12 hours ago"),
        ("openrouter", [{"data": {"limit_remaining": 12.5}}], 12.5, "USD", "12.50 USD left of the key's limit"),
        ("openrouter", [NO_LIMIT, {"data": {"total_credits": 100, "total_usage": 7.5}}], 92.5, "USD", "92.50 USD left"),
    ],
)
def test_a_number_and_what_it_counts(provider: str, answers: list[Any], left: float, unit: str, detail: str) -> None:
    """
    Money by its currency, else the provider's own word, which no stranger's text can take the place of.
    """
    adapter = an_adapter(provider)
    _, checked = converse(adapter.check(), *map(reply, answers))
    assert checked == Checked(detail=detail, quota=Quota(left=left, unit=unit))


@pytest.mark.parametrize(
    ("provider", "answers"),
    [
        ("runway", [{"tier": {}}]),
        ("vidu", [{"remains": []}]),
        ("vidu", [{"remains": [{"credit_remain": "many"}]}]),
        ("luma", [{"credit_balance": None}]),
        ("fal", [{"credits": {"current_balance": True}}]),
        ("kling", [packs()]),
        ("kling", [packs(pack(7, "expired"))]),
        ("openrouter", [NO_LIMIT, {"error": {"code": 403, "message": "only management keys"}}]),
        ("openrouter", [NO_LIMIT, {"data": {"total_credits": 100}}]),
    ],
)
def test_where_nothing_is_told_nothing_is_claimed(provider: str, answers: list[Any]) -> None:
    """
    The key is taken all the same; nothing is never said to be nought.
    """
    adapter = an_adapter(provider)
    _, checked = converse(adapter.check(), *map(reply, answers))
    assert checked == Checked()

"""
What a list shows of a lost create, held against what was sent.
"""

from base64 import b64encode
from hashlib import sha256
from typing import Any

import pytest

from vidrelay.core.adapter import Undecided
from vidrelay.core.lifecycle import Found
from vidrelay.providers.listing import Candidates, likeness, settled

BYTES = b"\x89PNG one"
ONE = {"$asset": f"sha256:{sha256(BYTES).hexdigest()}", "mediaType": "image/png"}
SHOWN = f"data:image/png;base64,{b64encode(BYTES).decode()}"
OTHER = f"data:image/png;base64,{b64encode(b'another').decode()}"
COPY = "https://files.example/1"


@pytest.mark.parametrize(
    ("listed", "sent", "alike"),
    [
        ({"prompt": "a", "seed": 7}, {"prompt": "a", "seed": 7}, True),
        ({"prompt": "a", "seed": "7.0", "end": None}, {"prompt": "a", "seed": 7, "start": None}, True),
        ({"prompt": "a", "seed": 8}, {"prompt": "a", "seed": 7}, False),
        ({"prompt": "a"}, {"prompt": "a", "seed": 7}, False),
        ({"prompt": "a  boat"}, {"prompt": " a boat\n"}, True),
        ({"prompt": "a boat"}, {"prompt": "a b oat"}, False),
        ({"prompt": "a", "seed": 7}, {"prompt": "a"}, None),
        ({"in": {"prompt": "a", "seed": 7}}, {"in": {"prompt": "a"}}, None),
        ({"in": ["a", {"b": 1, "c": 2}]}, {"in": ["a", {"b": 1}]}, None),
        ({"in": ["a", {"b": 2, "c": 2}]}, {"in": ["a", {"b": 1}]}, False),
        ({"in": ["a"]}, {"in": ["a", "b"]}, False),
        ({"in": "a"}, {"in": {"b": 1}}, False),
        ({"image": SHOWN}, {"image": ONE}, True),
        ({"image": OTHER}, {"image": ONE}, None),
        ({"image": "data:image/png;base64,AAA"}, {"image": ONE}, None),
        ({"image": COPY}, {"image": ONE}, None),
        ({"image": {"name": "1.png"}}, {"image": ONE}, None),
        ({"image": COPY}, {"image": {**ONE, "$copy": COPY}}, True),
        ({"image": COPY}, {"image": {**ONE, "$copy": "https://files.example/2"}}, None),
        ({"image": None}, {"image": ONE}, False),
        ({"images": [SHOWN, OTHER]}, {"images": [ONE, ONE]}, None),
    ],
)
def test_likeness_is_of_all_that_was_sent_and_no_more(listed: Any, sent: Any, alike: bool | None) -> None:
    """What says more, or shows a picture of other bytes, may be another's or the provider's own doing."""
    assert likeness(listed, sent) is alike


def test_a_doubtful_job_is_neither_it_nor_proof_of_absence() -> None:
    """It is left to a person; one that is surely alike is believed beside it."""
    left = settled({}, complete_after=700.0, doubtful=("b",))
    assert isinstance(left, Undecided)
    assert left.candidates == ("b",)
    assert isinstance(settled({"a": Found(remote_id="a")}, complete_after=700.0, doubtful=("b",)), Found)


def test_a_list_is_judged_when_all_its_pages_were_read() -> None:
    """Jobs that cannot be it are forgotten; one that can be it and doubtful ones count, and each of them once."""
    candidates = Candidates()
    for remote_id, is_alike in (("a", True), ("b", False), ("c", None), ("c", None)):
        candidates.add(Found(remote_id=remote_id), is_alike)
    assert candidates.settled() == Found(remote_id="a")
    unread = candidates.settled(whole=False)
    assert isinstance(unread, Undecided)
    assert unread.candidates == ("a", "c")

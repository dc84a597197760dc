"""
Pictures that go where the request's own extra wants them.
"""

import pytest

from vidrelay.core.errors import InvalidRequest
from vidrelay.providers.pictures import Pictures
from vidrelay.providers.uniform import apart, merged, placed

GIVEN = Pictures(first="https://x.example/1.png", last="https://x.example/2.png", others=("https://x.example/3.png",))


def test_a_picture_goes_where_extra_wants_it() -> None:
    """A named role is put there; what is not named is left to the adapter."""
    extra, left = placed({"input": {"tail": {"$reference": "last_frame"}, "refs": {"$reference": "reference"}}}, GIVEN)
    assert extra == {"input": {"tail": GIVEN.last, "refs": [GIVEN.others[0]]}}
    assert left == Pictures(first=GIVEN.first)
    assert merged({"input": {"prompt": "a"}}, extra)["input"] == {"prompt": "a", **extra["input"]}


@pytest.mark.parametrize("wanted", ["last_frame", "somewhere", 3, None, ["first_frame"]])
def test_a_role_that_nobody_has_is_refused(wanted: object) -> None:
    """The refusal names extra."""
    with pytest.raises(InvalidRequest) as refused:
        placed({"a": [{"$reference": wanted}]}, Pictures(first=GIVEN.first))
    assert refused.value.field == "extra"


def test_a_picture_cannot_be_smuggled_in() -> None:
    """What looks like one of ours in extra is refused, as everywhere."""
    with pytest.raises(InvalidRequest):
        placed({"a": {"$asset": "sha256:1"}}, GIVEN)


def test_a_list_is_taken_out_of_extra() -> None:
    """What is to be put behind a list of ours, and what is left without it; a picture in it is refused."""
    extra = {"input": {"media": [1], "audio": "a"}, "size": "b"}
    assert apart(extra, "input", "media") == ([1], {"input": {"audio": "a"}, "size": "b"})
    assert apart(extra, "size", "media") == ([], extra)
    assert apart(extra, "more") == ([], extra)
    with pytest.raises(InvalidRequest):
        apart({"media": [{"$asset": "sha256:1"}]}, "media")

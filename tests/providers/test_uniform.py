"""
Pictures that go where the request's own extra wants them, and values that only known models are held to.
"""

from importlib import import_module
from typing import Any

import pytest

from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import Request
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.pictures import Pictures
from vidrelay.providers.uniform import apart, merged, placed
from vidrelay.testing.clock import FakeClock

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


@pytest.mark.parametrize(
    ("provider", "known", "unknown"),
    [
        ("google", "veo-3.1-generate-preview", "veo-9-generate"),
        ("xai", "grok-imagine-video", "grok-imagine-video-9"),
        ("luma", "ray-2", "ray-9"),
        ("luma_agents", "ray-3.2", "ray-9"),
    ],
)
@pytest.mark.parametrize(("field", "value"), [("duration", 23), ("aspect_ratio", "5:1"), ("resolution", "8k")])
def test_what_a_model_takes_is_refused_only_of_those_that_are_known(
    provider: str, known: str, unknown: str, field: str, value: Any
) -> None:
    """A model that nobody has told us of may take anything: its provider refuses what it does not."""
    make = import_module(f"vidrelay.providers.{provider}.adapter").make
    adapter = make(AdapterSettings(now=FakeClock().now, key="k"))
    with pytest.raises(InvalidRequest):
        adapter.prepare(Request(prompt="a boat", model_version=known, **{field: value}), {})
    told = adapter.prepare(Request(prompt="a boat", model_version=unknown, **{field: value}), {})
    assert str(value) in str(told.parameters)

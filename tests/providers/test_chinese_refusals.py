"""
What the known models of Chinese providers cannot do is refused before anything is sent, by the parameter's name and
with what is accepted; of a model that nobody has told us of, nothing is known.
"""

from typing import Any

import pytest

from vidrelay.core.errors import InvalidRequest
from vidrelay.core.task import JsonObject, Reference, Request
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.registry import make_adapter
from vidrelay.testing.clock import FakeClock
from vidrelay.testing.rehearsal import PICTURE

FIVE = ("16:9", "9:16", "3:4", "4:3", "1:1")
SHAPES = [
    ("ark", "doubao-seedance-1-5-pro-251215", (*FIVE, "21:9", "adaptive")),
    ("ark", "dreamina-seedance-2-0-260128", (*FIVE, "21:9", "adaptive")),
    ("minimax-v2", "MiniMax-H3", (*FIVE, "21:9")),
    ("dashscope", "wan3.0-video", FIVE),
    ("dashscope", "wan2.7-t2v", FIVE),
    ("dashscope", "wan2.6-t2v", FIVE),
    ("vidu", "viduq3-turbo", FIVE),
    ("vidu", "vidu2.0", FIVE),
    ("zhipu", "cogvideox-3", ("16:9", "9:16", "1:1")),
    ("zhipu", "viduq1-text", FIVE),
    ("jimeng", None, (*FIVE, "21:9")),
    ("tencent-kling", "v2.5", ("16:9", "9:16", "1:1")),
    ("kling", "kling-v1", ("16:9", "9:16", "1:1")),
]
UNKNOWN = {
    "ark": "ep-20261101-abcde",
    "minimax-v2": "MiniMax-H4",
    "dashscope": "acme/new-model",
    "vidu": "viduq9",
    "zhipu": "vidu9-text",
    "jimeng": "jimeng_new",
    "tencent-kling": "v9",
    "kling": "kling-v9",
}
LAST_ALONE = (Reference(asset=PICTURE.id, role="last_frame"),)


def prepared(account: str, model: str | None, **fields: Any) -> JsonObject:
    """
    The parameters of that request at that provider; a dialect stands behind its name.
    """
    name, _, dialect = account.partition("-")
    settings = AdapterSettings(
        now=FakeClock().now, key="key:secret", base_url="https://api.example", dialect=dialect or None
    )
    request = Request(prompt="a paper boat", model_version=model, **fields)
    return make_adapter(name, settings).prepare(request, {PICTURE.id: PICTURE}).parameters


def refusal(account: str, model: str | None, **fields: Any) -> InvalidRequest:
    """
    The refusal of that request.
    """
    with pytest.raises(InvalidRequest) as refused:
        prepared(account, model, **fields)
    return refused.value


@pytest.mark.parametrize(("account", "model", "accepted"), SHAPES)
def test_a_shape_that_cannot_be_is_refused_by_name(account: str, model: str, accepted: tuple[str, ...]) -> None:
    """7:5 is no shape of any of them, and each that is said to be one is taken."""
    refused = refusal(account, model, aspect_ratio="7:5")
    assert refused.field == "aspectRatio"
    assert "7:5" in refused.message
    for shape in accepted:
        assert shape in refused.message
        prepared(account, model, aspect_ratio=shape)


@pytest.mark.parametrize(
    ("account", "other"), [("minimax-v1", "duration, resolution"), ("tencent-hunyuan", "resolution")]
)
def test_who_has_no_shape_says_so(account: str, other: str) -> None:
    """And names what there is instead."""
    refused = refusal(account, None, aspect_ratio="7:5")
    assert refused.field == "aspectRatio"
    assert other in refused.message


@pytest.mark.parametrize(("account", "model"), UNKNOWN.items())
def test_of_an_unknown_model_no_shape_is_known(account: str, model: str) -> None:
    """It is sent; the model refuses what it does not take."""
    assert "7:5" in str(prepared(account, model, aspect_ratio="7:5"))


@pytest.mark.parametrize(
    ("account", "model", "fields", "said"),
    [
        ("minimax-v1", "new-model", {"duration": 7}, "'duration': 7"),
        ("jimeng", "jimeng_new", {"duration": 7}, "'frames': 169"),
        ("zhipu", "new-model", {"duration": 7}, "'duration': 7"),
        ("zhipu", "new-model", {"resolution": "480p"}, "'size': '854x480'"),
        ("zhipu", "new-model", {"resolution": "720p", "aspect_ratio": "7:5"}, "'size': '1008x720'"),
        ("dashscope", "acme/new-model", {"resolution": "4k"}, "'resolution': '4K'"),
    ],
)
def test_of_an_unknown_model_no_length_and_no_size_is_known(
    account: str, model: str, fields: dict[str, Any], said: str
) -> None:
    """They are said as the known models are told, and the model refuses what it does not take."""
    assert said in str(prepared(account, model, **fields))


@pytest.mark.parametrize(
    ("account", "model", "fields", "field"),
    [
        ("minimax-v1", "MiniMax-Hailuo-2.3", {"duration": 7}, "duration"),
        ("minimax-v1", "S2V-01", {"duration": 7}, "duration"),
        ("minimax-v1", "new-model", {"duration": 0}, "duration"),
        ("jimeng", "jimeng_t2v_v30", {"duration": 7}, "duration"),
        ("jimeng", "jimeng_new", {"duration": 0}, "duration"),
        ("jimeng", None, {"duration": 7}, "duration"),
        ("zhipu", "cogvideox-3", {"resolution": "480p"}, "resolution"),
        ("zhipu", "cogvideox-3", {"duration": 7}, "duration"),
        ("zhipu", "new-model", {"resolution": "0x0"}, "resolution"),
        ("dashscope", "wan2.6-t2v", {"resolution": "4k"}, "resolution"),
        ("dashscope", "wan2.6-i2v", {"resolution": "4k"}, "resolution"),
    ],
)
def test_a_length_or_size_that_cannot_be_is_refused_by_name(
    account: str, model: str | None, fields: dict[str, Any], field: str
) -> None:
    """Of a known model, and of any where it makes no sense."""
    assert refusal(account, model, **fields).field == field


@pytest.mark.parametrize(
    ("account", "model"),
    [
        ("ark", "doubao-seedance-1-5-pro-251215"),
        ("minimax-v1", "MiniMax-Hailuo-02"),
        ("minimax-v1", "I2V-01"),
        ("dashscope", "wanx2.1-kf2v-plus"),
        ("dashscope", "wan2.7-i2v"),
        ("vidu", "viduq3-turbo"),
        ("zhipu", "cogvideox-3"),
        ("zhipu", "viduq1-start-end"),
        ("jimeng", None),
        ("kling", "kling-v2-6"),
    ],
)
def test_a_last_frame_needs_a_first_where_it_does(account: str, model: str) -> None:
    """A clip of a last frame alone is none that they make."""
    refused = refusal(account, model, references=LAST_ALONE)
    assert refused.field == "references"
    assert "only with a first one" in refused.message


@pytest.mark.parametrize(
    ("account", "model", "extra"),
    [
        ("tencent-kling", "v2.5", {}),
        ("minimax-v2", "MiniMax-H3", {}),
        ("minimax-v1", "MiniMax-Hailuo-9", {"first_frame_image": "https://x.example/a.png"}),
        ("minimax-v1", "new-model", {}),
        ("dashscope", "wan3.0-video", {}),
        ("dashscope", "wan2.7-i2v", {"input": {"media": [{"type": "first_clip", "url": "https://x.example/a.mp4"}]}}),
        ("dashscope", "wan2.2-kf2v-flash", {"input": {"first_frame_url": "https://x.example/a.png"}}),
        ("ark", "ep-20261101-abcde", {}),
    ],
)
def test_a_last_frame_stands_alone_where_it_may(account: str, model: str, extra: JsonObject) -> None:
    """Its provider says so, nothing is known against it, or extra brings what goes before it."""
    assert PICTURE.id in str(prepared(account, model, references=LAST_ALONE, extra=extra))


def test_hailuo_makes_no_long_clip_in_1080p() -> None:
    """Its clips of 10 seconds are smaller; of another model nobody has told us."""
    for model in (None, "MiniMax-Hailuo-02"):
        refused = refusal("minimax-v1", model, duration=10, resolution="1080p")
        assert refused.field == "resolution"
        assert "768P or 512P" in refused.message
        assert prepared("minimax-v1", model, duration=6, resolution="1080p")["resolution"] == "1080P"
        assert prepared("minimax-v1", model, duration=10, resolution="768p")["resolution"] == "768P"
    assert prepared("minimax-v1", "new-model", duration=10, resolution="1080P")["resolution"] == "1080P"


def test_seedance_before_2_makes_no_4k() -> None:
    """Whatever stands before and behind the model's name."""
    for model in ("doubao-seedance-1-5-pro-251215", "seedance-1-0-pro-250528"):
        refused = refusal("ark", model, resolution="4k")
        assert refused.field == "resolution"
        assert "480p, 720p, 1080p" in refused.message

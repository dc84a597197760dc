"""
What the known models of western providers cannot do is refused before anything is sent, by the parameter's name and
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

KNOWN = {
    "openai": "sora-2",
    "runway": "gen4.5",
    "luma": "ray-2",
    "luma-agents": "ray-3.2",
    "google": "veo-3.1-generate-preview",
    "xai": "grok-imagine-video",
}
UNKNOWN = {
    **dict.fromkeys(KNOWN, "new-model"),
    "replicate": "acme/new-model",
    "fal": "acme/new-model",
}
LAST_ALONE = (Reference(asset=PICTURE.id, role="last_frame"),)


def prepared(provider: str, model: str | None, **fields: Any) -> JsonObject:
    """
    The parameters of that request at that provider.
    """
    dialect = "openai" if provider == "openai" else None
    settings = AdapterSettings(now=FakeClock().now, base_url="https://api.example/v1", dialect=dialect)
    request = Request(prompt="a paper boat", model_version=model, **fields)
    return make_adapter(provider, settings).prepare(request, {PICTURE.id: PICTURE}).parameters


def refusal(provider: str, model: str | None, **fields: Any) -> InvalidRequest:
    """
    The refusal of that request.
    """
    with pytest.raises(InvalidRequest) as refused:
        prepared(provider, model, **fields)
    return refused.value


@pytest.mark.parametrize(
    ("provider", "model", "accepted"),
    [
        *((name, model, "1280:720" if name == "runway" else "16:9") for name, model in KNOWN.items()),
        ("google", "gemini-omni-1.2-flash", "16:9"),
        ("openrouter", "acme/any", "16:9"),
        ("openai", "sora-2-pro", "16:9, 9:16, 7:4, 4:7"),
    ],
)
def test_a_shape_that_cannot_be_is_refused_by_name(provider: str, model: str, accepted: str) -> None:
    """7:5 is no shape of any of them."""
    refused = refusal(provider, model, aspect_ratio="7:5")
    assert refused.field == "aspectRatio"
    assert accepted in refused.message
    assert "7:5" in refused.message


@pytest.mark.parametrize(
    ("provider", "model", "accepted"),
    [
        ("openai", "sora-2", "4, 8, 12, 16, 20"),
        ("runway", "gen4.5", "2, 3, 4, 5"),
        ("runway", "veo3.1", "4, 6, 8"),
        ("luma", "ray-2", "5, 9"),
        ("luma-agents", "ray-3.2", "5, 10"),
        ("google", "veo-3.1-generate-preview", "4, 6, 8"),
        ("google", "gemini-omni-1.2-flash", "whole"),
        ("xai", "grok-imagine-video", "from 1 to 15"),
        ("openrouter", "acme/any", "whole"),
    ],
)
def test_half_a_second_is_refused_by_name(provider: str, model: str, accepted: str) -> None:
    """It is sent neither as it is nor as the whole number beside it, and what is taken is said."""
    refused = refusal(provider, model, duration=4.5)
    assert refused.field == "duration"
    assert accepted in refused.message
    assert "4.5" in refused.message


@pytest.mark.parametrize(("provider", "model"), UNKNOWN.items())
def test_of_an_unknown_model_no_shape_is_known(provider: str, model: str) -> None:
    """It is sent; the model refuses what it does not take."""
    sent = str(prepared(provider, model, aspect_ratio="7:5"))
    assert ("1008x720" if provider == "openai" else "7:5") in sent


@pytest.mark.parametrize(
    ("provider", "model"), [("google", "veo-3.1-generate-preview"), ("runway", "veo3.1"), ("runway", "seedance2")]
)
def test_a_last_frame_needs_a_first_where_it_does(provider: str, model: str) -> None:
    """A clip of a last frame alone is none that they make."""
    refused = refusal(provider, model, references=LAST_ALONE)
    assert refused.field == "references"
    assert "first" in refused.message


@pytest.mark.parametrize("provider", ["luma", "xai"])
def test_a_last_frame_stands_alone_where_it_may(provider: str) -> None:
    """Nothing is known against it there."""
    last = (Reference(url="https://a.example/a.png", role="last_frame"),)
    assert "https://a.example/a.png" in str(prepared(provider, KNOWN[provider], references=last))


def test_veo_takes_no_seed_and_no_frame_beside_references() -> None:
    """Google's SDK refuses both for a key of this API; what the SDK does not know of, extra sends all the same."""
    veo = KNOWN["google"]
    refused = refusal("google", veo, seed=7)
    assert refused.field == "seed"
    assert "negativePrompt" in refused.message
    assert prepared("google", "veo-9", seed=7)["parameters"] == {"seed": 7}
    assert prepared("google", veo, extra={"parameters": {"seed": 7}})["parameters"] == {"seed": 7}
    both = (Reference(asset=PICTURE.id, role="first_frame"), Reference(asset=PICTURE.id, role="reference"))
    assert refusal("google", veo, references=both).field == "references"
    assert len(prepared("google", "veo-9", references=both)["instances"][0]) == 3


def test_a_size_that_sora_does_not_make_is_refused() -> None:
    """By the resolution where the shape is right; the larger ones are the greater model's alone."""
    for model, resolution in (("sora-2", "480p"), ("sora-2", "1080p"), ("sora-2-pro", "4k")):
        refused = refusal("openai", model, resolution=resolution, aspect_ratio="16:9")
        assert refused.field == "resolution"
        assert "1280x720" in refused.message
    for resolution, size in (("720p", "1280x720"), ("1080p", "1920x1080"), ("1792x1024", "1792x1024")):
        assert prepared("openai", "sora-2-pro", resolution=resolution)["size"] == size

"""
What is the same create call where a form goes out has the same fingerprint, however its numbers were written.
"""

import pytest

from vidrelay.core.adapter import Adapter, asset_parameter
from vidrelay.core.fingerprint import fingerprint
from vidrelay.core.messages import Form
from vidrelay.core.task import Asset, JsonObject, Reference, Request
from vidrelay.providers.json_api import AdapterSettings
from vidrelay.providers.registry import make_adapter
from vidrelay.testing.clock import FakeClock
from vidrelay.testing.conversing import converse, reply
from vidrelay.testing.records import make_task

PICTURE = Asset(id="sha256:1", pixels="p1:1", width=8, height=8, size_bytes=99, media_type="image/png")


def adapter_of(provider: str, dialect: str | None = None) -> Adapter:
    """
    The adapter of an account at a gateway.
    """
    settings = AdapterSettings(now=FakeClock().now, key="k", base_url="https://gate.example/v1", dialect=dialect)
    return make_adapter(provider, settings)


def sent(adapter: Adapter, parameters: JsonObject) -> object:
    """
    What leaves for these parameters.
    """
    requests, _ = converse(adapter.submit(make_task(parameters=parameters)), reply({"id": "job-1", "status": "queued"}))
    body = requests[0].body
    return sorted(body.fields) if isinstance(body, Form) else body


def known_as(adapter: Adapter, parameters: JsonObject) -> str:
    """
    The fingerprint of these parameters.
    """
    return fingerprint(
        account="a",
        provider="p",
        parameters=adapter.typed(parameters),
        pictures={PICTURE.id: PICTURE.pixels},
        irrelevant=adapter.traits.irrelevant,
        prompts=adapter.traits.prompts,
    )


def asked(adapter: Adapter, **fields: object) -> JsonObject:
    """
    A request in the provider's words.
    """
    return adapter.prepare(
        Request(**{"prompt": "a boat", "model_version": "m", **fields}), {"sha256:1": PICTURE}
    ).parameters


@pytest.mark.parametrize("dialect", [None, "vllm-omni"])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"duration": 5}, {"extra": {"seconds": 5}}),
        ({"duration": 5}, {"extra": {"seconds": "5"}}),
        ({"duration": 5}, {"extra": {"seconds": 5.0}}),
        ({"extra": {"fps": 24}}, {"extra": {"fps": "24"}}),
        ({"extra": {"loop": True}}, {"extra": {"loop": "true"}}),
        ({"extra": {"cfg": 4.5}}, {"extra": {"cfg": "4.5"}}),
        ({"seed": 7}, {"extra": {"seed": "7"}}),
    ],
)
def test_a_form_is_the_same_however_its_numbers_were_written(
    dialect: str | None, one: dict[str, object], other: dict[str, object]
) -> None:
    """
    What is sent is the same, and so is the fingerprint.
    """
    adapter = adapter_of("openai", dialect)
    first, second = asked(adapter, **one), asked(adapter, **other)
    assert sent(adapter, first) == sent(adapter, second)
    assert sent(adapter, first) == sent(adapter, adapter.typed(first))
    assert known_as(adapter, first) == known_as(adapter, second)


def test_what_a_form_sends_otherwise_is_another_request() -> None:
    """
    A number of its own, and a text that only looks like one.
    """
    adapter = adapter_of("openai")
    ways = [asked(adapter, extra={"fps": fps}) for fps in (24, 25, "24.0", "024", None, True)]
    assert len({known_as(adapter, way) for way in ways}) == len(ways)


@pytest.mark.parametrize("dialect", ["openai", "sglang"])
def test_json_keeps_its_types_and_a_picture_makes_it_a_form(dialect: str) -> None:
    """
    24 and "24" are two requests in JSON; with a picture the words go as a form, where they are one.
    """
    adapter = adapter_of("openai", dialect)
    ways = [{"extra": {"fps": 24}}, {"extra": {"fps": "24"}}]
    number, text = (asked(adapter, **way) for way in ways)
    assert sent(adapter, number) != sent(adapter, text)
    assert known_as(adapter, number) != known_as(adapter, text)
    number, text = (asked(adapter, **way, references=(Reference(asset="sha256:1"),)) for way in ways)
    assert known_as(adapter, number) == known_as(adapter, text)
    assert adapter.typed(number)["input_reference"] == asset_parameter(PICTURE)


def test_a_gateways_form_has_no_objects() -> None:
    """
    With a picture for a Sora model, metadata and the fields beside it are one; without it they are JSON.
    """
    adapter = adapter_of("new-api")
    flat, nested = {"fps": 24}, {"metadata": {"fps": "24"}}
    reference = (Reference(asset="sha256:1"),)
    ways = [asked(adapter, model_version="sora-2", extra=extra, references=reference) for extra in (flat, nested)]
    assert sent(adapter, ways[0]) == sent(adapter, ways[1]) == sent(adapter, adapter.typed(ways[1]))
    assert known_as(adapter, ways[0]) == known_as(adapter, ways[1])
    ways = [asked(adapter, model_version="sora-2", extra=extra) for extra in (flat, nested)]
    assert known_as(adapter, ways[0]) != known_as(adapter, ways[1])
